// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The same as types.c, of Rust: enums with values, slices, boxes and collections.
use std::collections::HashMap;
use std::hint::black_box;

pub struct Point {
    pub x: i32,
    pub y: i64,
}

pub enum Shape {
    Circle { at: Point, radius: f64 },
    Square(f64, f64, u32),
    Empty,
}

pub struct Node {
    pub key: u64,
    pub next: Option<Box<Node>>,
    pub points: [Point; 4],
}

pub struct Order {
    pub id: u64,
    pub name: String,
    pub lines: Vec<Point>,
    pub shape: Shape,
}

pub static mut COUNTS: [u32; 16] = [0; 16];

#[no_mangle]
#[inline(never)]
pub fn get_y(p: &Point) -> i64 {
    p.y // -> types::Point y
}

#[no_mangle]
#[inline(never)]
pub fn set_x(p: &mut Point) {
    p.x = 3; // -> types::Point x
}

#[no_mangle]
#[inline(never)]
pub fn get_key(n: &Node) -> u64 {
    n.key // -> types::Node key
}

#[no_mangle]
#[inline(never)]
pub fn third(n: &Node) -> i64 {
    n.points[2].y // -> types::Node points[].y
}

#[no_mangle]
#[inline(never)]
pub fn name_length(o: &Order) -> usize {
    o.name.len() // -> types::Order name.vec.len
}

#[no_mangle]
#[inline(never)]
pub fn sum_points(points: &[Point]) -> i64 {
    let mut sum = 0;
    for p in points {
        sum += p.y; // -> types::Point y
    }
    sum
}

#[no_mangle]
#[inline(never)]
pub fn sum_lines(o: &Order) -> i64 {
    let mut sum = 0;
    for p in o.lines.iter() {
        sum += p.x as i64; // -> types::Point x or types::Point x; [outside]
    }
    sum
}

#[no_mangle]
#[inline(never)]
pub fn walk(mut at: &Node) -> u64 {
    let mut sum = 0;
    while let Some(next) = &at.next {
        sum += next.key; // -> types::Node key
        at = next;
    }
    sum
}

#[no_mangle]
#[inline(never)]
pub fn area(s: &Shape) -> f64 {
    match s {
        Shape::Circle { radius, .. } => radius * radius * 3.14,
        Shape::Square(a, b, _) => a * b,
        Shape::Empty => 0.0,
    }
}

#[no_mangle]
#[inline(never)]
pub fn count(i: usize) {
    unsafe { COUNTS[i & 15] += 1 } // -> u32
}

#[no_mangle]
#[inline(never)]
pub fn lookup(m: &HashMap<u64, Order>, key: u64) -> i64 {
    match m.get(&key) {
        Some(o) => o.id as i64,
        None => -1,
    }
}

fn list(n: u64) -> Option<Box<Node>> {
    let mut head = None;
    for key in 0..n {
        let points = [(); 4].map(|_| Point { x: key as i32, y: 1 });
        head = Some(Box::new(Node { key, next: head, points }));
    }
    head
}

fn main() {
    let mut orders = HashMap::new();
    for id in 0..500u64 {
        let lines: Vec<Point> = (0..10).map(|i| Point { x: i, y: id as i64 }).collect();
        let shape = match id % 3 {
            0 => Shape::Circle { at: Point { x: 1, y: 2 }, radius: id as f64 },
            1 => Shape::Square(1.0, id as f64, 7),
            _ => Shape::Empty,
        };
        orders.insert(id, Order { id, name: format!("order {}", id), lines, shape });
    }
    let head = list(200).unwrap();
    let mut sum = 0;
    for id in 0..2000u64 {
        sum += lookup(black_box(&orders), id % 600);
        count(id as usize);
    }
    for o in orders.values_mut() {
        set_x(&mut o.lines[0]);
        sum += get_y(&o.lines[1]) + sum_points(&o.lines) + sum_lines(o) + name_length(o) as i64;
        sum += area(&o.shape) as i64;
    }
    sum += (walk(&head) + get_key(&head)) as i64 + third(&head);
    println!("{}", black_box(sum));
}
