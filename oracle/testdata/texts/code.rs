use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Write};

/// A token of an arithmetic expression.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Operator(char),
    Open,
    Close,
}

#[derive(Debug)]
enum ParseError {
    UnexpectedCharacter { found: char, at: usize },
    UnexpectedEnd,
    UnknownName(String),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::UnexpectedCharacter { found, at } => write!(f, "unexpected {found:?} at {at}"),
            ParseError::UnexpectedEnd => f.write_str("unexpected end of input"),
            ParseError::UnknownName(name) => write!(f, "unknown name {name}"),
        }
    }
}

impl std::error::Error for ParseError {}

fn tokenize(input: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    let mut chars = input.char_indices().peekable();
    while let Some(&(at, c)) = chars.peek() {
        match c {
            ' ' | '\t' => {
                chars.next();
            }
            '0'..='9' | '.' => {
                let mut text = String::new();
                while let Some(&(_, d)) = chars.peek().filter(|(_, d)| d.is_ascii_digit() || *d == '.') {
                    text.push(d);
                    chars.next();
                }
                tokens.push(Token::Number(text.parse().map_err(|_| ParseError::UnexpectedCharacter { found: c, at })?));
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let mut name = String::new();
                while let Some(&(_, d)) = chars.peek().filter(|(_, d)| d.is_alphanumeric() || *d == '_') {
                    name.push(d);
                    chars.next();
                }
                tokens.push(Token::Name(name));
            }
            '+' | '-' | '*' | '/' | '^' => {
                tokens.push(Token::Operator(c));
                chars.next();
            }
            '(' => {
                tokens.push(Token::Open);
                chars.next();
            }
            ')' => {
                tokens.push(Token::Close);
                chars.next();
            }
            found => return Err(ParseError::UnexpectedCharacter { found, at }),
        }
    }
    Ok(tokens)
}

struct Scope<'a> {
    parent: Option<&'a Scope<'a>>,
    values: BTreeMap<String, f64>,
}

impl<'a> Scope<'a> {
    fn lookup(&self, name: &str) -> Result<f64, ParseError> {
        match (self.values.get(name), self.parent) {
            (Some(&value), _) => Ok(value),
            (None, Some(parent)) => parent.lookup(name),
            (None, None) => Err(ParseError::UnknownName(name.to_owned())),
        }
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        match tokenize(&line?) {
            Ok(tokens) => writeln!(out, "{tokens:?}")?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    Ok(())
}
