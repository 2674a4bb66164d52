// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The same as types.c, of C++: classes, references, containers and what compilers inline of them.
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define APART __attribute__((noinline))

namespace shop
{

class Base
{
      public:
	virtual ~Base() = default;
	long id;
};

class Order : public Base
{
      public:
	Order() = default;
	APART double total() const
	{
		return price; // -> shop::Order price
	}
	APART void set(long n);

	double price;
	std::string name;

	struct Line {
		int count, article;
	};
	std::vector<Line> lines;
};

APART void Order::set(long n)
{
	id = n; // -> shop::Order id
}

} // namespace shop

using shop::Order;

APART long get_id(const Order &o)
{
	return o.id; // -> shop::Order id
}

APART double sum(const std::vector<Order *> &orders)
{
	double sum = 0;

	for (const Order *o : orders)
		sum += o->price; // -> shop::Order price or shop::Order*; shop::Order price
	return sum;
}

APART int count(const std::vector<Order::Line> &lines)
{
	int sum = 0;

	for (const Order::Line &l : lines)
		sum += l.count; // -> shop::Order::Line count or shop::Order::Line count; [outside]
	return sum;
}

APART int counts(const Order *o)
{
	int sum = 0;

	for (size_t i = 0; i < o->lines.size(); i++)
		sum += o->lines[i].article; // -> shop::Order::Line article
	return sum;
}

APART long walk(const std::list<Order::Line> &lines)
{
	long sum = 0;

	for (const Order::Line &l : lines)
		sum += l.article; // -> shop::Order::Line article or std::__detail::_List_node_base _M_next; [outside]
	return sum;
}

APART double shared(const std::shared_ptr<Order> &o)
{
	return o->price; // -> std::shared_ptr<shop::Order> _M_ptr; shop::Order price or shop::Order price
}

APART double unique(const std::unique_ptr<Order> &o)
{
	return o->price; // -> shop::Order price or std::unique_ptr<shop::Order, std::default_delete<shop::Order> > _M_t._M_t._M_head_impl; shop::Order price
}

APART char first(const std::string &s)
{
	return s[0]; // -> char or char; std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > _M_dataplus._M_p
}

APART long tree(const std::map<int, Order> &m)
{
	long sum = 0;

	for (const auto &of : m)
		sum += of.second.id; // -> std::pair<int const, shop::Order> second.id or std::pair<const int, shop::Order> second.id or [outside]
	return sum;
}

APART double hashed(std::unordered_map<int, Order> &m, int key)
{
	return m[key].price; // -> shop::Order price
}

int main()
{
	std::vector<Order *> orders;
	std::vector<Order::Line> lines(3);
	std::list<Order::Line> list;
	std::map<int, Order> tree_of;
	std::unordered_map<int, Order> hash;
	auto s = std::make_shared<Order>();
	auto u = std::make_unique<Order>();

	orders.push_back(s.get());
	s->set(3);
	return get_id(*s) + sum(orders) + count(lines) + counts(s.get()) + walk(list) + shared(s) +
	       unique(u) + first(s->name) + tree(tree_of) + hashed(hash, 3) + s->total();
}
