//! The types that the tests measure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use memreport::{MallocSizeOf, Ops};

/// An article, with all that it owns.
#[derive(Debug, Default, MallocSizeOf)]
pub struct Article {
    pub name: String,
    pub pictures: Vec<Vec<u8>>,
}

impl Article {
    pub fn new(name: &str, pictures: usize) -> Self {
        Article { name: name.repeat(10), pictures: (0..pictures).map(|_| vec![1; 700]).collect() }
    }
}

/// An order, which is measured by hand.
#[derive(Debug, Default)]
pub struct Order {
    pub articles: HashMap<u32, Arc<Article>>,
    pub note: Option<Box<str>>,
}

impl MallocSizeOf for Order {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.articles);
        ops.add(&self.note);
    }
}

impl Order {
    pub fn new(articles: u32) -> Self {
        let article = |number| (number, Arc::new(Article::new("article ", 3)));
        Order { articles: (0..articles).map(article).collect(), note: Some("paid".into()) }
    }
}

/// All orders: every test adds to them.
pub static ORDERS: Mutex<Vec<Order>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/orders", ORDERS, "All orders.");

/// Adds an order for all tests.
pub fn add_order(order: Order) {
    ORDERS.lock().unwrap_or_else(PoisonError::into_inner).push(order);
}
