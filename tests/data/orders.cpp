// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The same as orders.c, of C++: classes, virtual functions and containers.
#include <algorithm>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop
{

struct Article {
	std::string name;
	double price = 0;
	int stock = 1000, sold = 0;
};

class Discount
{
      public:
	virtual ~Discount() = default;
	virtual double of(double sum) const = 0;
};

class Percent : public Discount
{
      public:
	explicit Percent(double p) : percent(p) {}
	double of(double sum) const override { return sum * percent / 100; }

      private:
	double percent;
};

class Flat : public Discount
{
      public:
	explicit Flat(double a) : amount(a), used(0) {}
	double of(double) const override
	{
		used++;
		return amount;
	}

      private:
	double amount;
	mutable long used;
};

struct Line {
	Article *article;
	int count;
};

struct Customer {
	std::string name;
	int orders = 0;
	double spent = 0;
};

class Order
{
      public:
	Order(long i, std::shared_ptr<Customer> c) : id(i), customer(std::move(c)) {}
	void add(Article &a, int count)
	{
		lines.push_back({ &a, count });
		a.stock -= count;
		a.sold += count;
		total += count * a.price;
	}
	void close(const Discount &d)
	{
		total -= d.of(total);
		customer->orders++;
		customer->spent += total;
	}
	double sum() const
	{
		double sum = 0;

		for (const Line &l : lines)
			sum += l.count * l.article->price;
		return sum;
	}
	long id;
	double total = 0;

      private:
	std::shared_ptr<Customer> customer;
	std::vector<Line> lines;
};

class Shop
{
      public:
	explicit Shop(size_t n) : articles(n)
	{
		for (size_t i = 0; i < n; i++) {
			articles[i].name = "a rather long name of article " + std::to_string(i);
			articles[i].price = 1 + random(1000) / 100.0;
		}
		discounts.push_back(std::make_unique<Percent>(5));
		discounts.push_back(std::make_unique<Flat>(1));
	}
	void order(long id)
	{
		unsigned int key = random(300) * 7919;
		auto &c = customers[key];

		if (!c)
			c = std::make_shared<Customer>();
		orders.emplace_back(id, c);
		for (unsigned int n = 1 + random(4); n--;)
			orders.back().add(articles[random(articles.size())], 1 + random(3));
		orders.back().close(*discounts[id & 1]);
		by_total[orders.back().total] = &orders.back();
	}
	double check() const
	{
		double sum = 0;

		for (const Order &o : orders)
			sum += o.sum();
		for (const auto &of : customers)
			sum -= of.second->spent;
		for (const auto &[total, order] : by_total)
			sum += order->id & 1 ? total : -total;
		return sum;
	}
	std::string best() const
	{
		return std::max_element(articles.begin(), articles.end(), [](const Article &a, const Article &b) {
			       return a.sold < b.sold;
		       })->name;
	}

      private:
	unsigned int random(unsigned int n)
	{
		seed = seed * 1103515245 + 12345;
		return (seed >> 16) % n;
	}
	unsigned int seed = 1;
	std::vector<Article> articles;
	std::vector<std::unique_ptr<Discount>> discounts;
	std::unordered_map<unsigned int, std::shared_ptr<Customer>> customers;
	std::list<Order> orders;
	std::map<double, const Order *> by_total;
};

} // namespace shop

int main()
{
	shop::Shop shop(64);

	for (long id = 0; id < 2000; id++)
		shop.order(id);
	printf("%g %s\n", shop.check(), shop.best().c_str());
}
