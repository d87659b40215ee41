//! struct Commented {
use std::fmt;

pub const LIMIT: usize = 5;

#[derive(Debug)]
pub struct Store<'a, T> {
    name: &'a str,
    open: char,
}

impl<'a, T: Clone> Store<'a, T>
where
    T: fmt::Debug,
{
    pub fn new(name: &'a str) -> Self {
        fn local() {}
        Store { name, open: '{' }
    }

    pub(crate) async unsafe fn load(&self) -> Option<T> { None }
}

impl fmt::Display for Store<'_, u8> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "}}")
    }
}

pub trait Shape {
    fn area(&self) -> f64;
}

enum Color { Red, Green }
type Names = Vec<String>;
macro_rules! say { () => {}; }

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
