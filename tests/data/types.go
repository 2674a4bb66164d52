// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The same as types.c, of Go: slices, strings, maps, interfaces and embedded structs.
package main

type Point struct {
	X int32
	Y int64
}

type Base struct {
	ID   int64
	Name string
}

type Order struct {
	Base
	Lines []Point
	Next  *Order
	Grid  [4]Point
}

type Shape interface{ Area() float64 }

type Square struct{ Side, Scale float64 }

var counts [16]uint32
var total int64
var sink interface{}

//go:noinline
func (s *Square) Area() float64 {
	return s.Side * s.Scale // -> main.Square Side; main.Square Scale
}

//go:noinline
func getY(p *Point) int64 {
	return p.Y // -> main.Point Y
}

//go:noinline
func setID(o *Order) {
	o.ID = 3 // -> main.Order Base.ID
}

//go:noinline
func nameLen(o *Order) int {
	return len(o.Name) // -> main.Order Base.Name.len
}

//go:noinline
func grid(o *Order) int64 {
	return o.Grid[2].Y // -> main.Order Grid[].Y
}

//go:noinline
func walk(o *Order) int64 {
	var sum int64
	for ; o != nil; o = o.Next { // -> main.Order Next
		sum += o.ID // -> main.Order Base.ID
	}
	return sum
}

//go:noinline
func sumPoints(points []Point) int64 {
	var sum int64
	for i := range points {
		sum += points[i].Y // -> main.Point Y
	}
	return sum
}

//go:noinline
func sumLines(o *Order) int64 {
	var sum int64
	for i := 0; i < len(o.Lines); i++ { // -> main.Order Lines.len or main.Order Lines.len; main.Order Lines.array
		sum += int64(o.Lines[i].X)
	}
	return sum
}

//go:noinline
func count(i int) {
	counts[i&15]++ // -> uint32
	total++        // -> int64
}

//go:noinline
func area(s Shape) float64 {
	return s.Area()
}

//go:noinline
func lookup(m map[int64]*Order, key int64) int64 {
	if o := m[key]; o != nil {
		return o.ID
	}
	return -1
}

func main() {
	orders := map[int64]*Order{}
	var head *Order
	var sum int64
	for i := int64(0); i < 100; i++ {
		head = &Order{Base: Base{i, "order"}, Lines: make([]Point, 10), Next: head}
		orders[i] = head
	}
	for i := int64(0); i < 200; i++ {
		sum += lookup(orders, i)
		count(int(i))
	}
	setID(head)
	sum += getY(&head.Lines[1]) + int64(nameLen(head)) + grid(head) + walk(head)
	sum += sumPoints(head.Lines) + sumLines(head) + int64(area(&Square{2, 3}))
	println(sum)
}
