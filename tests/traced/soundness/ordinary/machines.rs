//! Ordinary Rust: machines with states, parsers, collections as state, recursion.

ordinary! {
    tokens_and_parser: inputs(3),
    plain {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Token {
            Number(f64),
            Name(usize),
            Sign(char),
            End,
        }
        struct Parser<'a> {
            text: &'a [u8],
            at: usize,
            x: &'a [Var],
        }
    }
    traced {
        impl<'a> Parser<'a> {
            fn new(text: &'a str, x: &'a [Var]) -> Self {
                Parser { text: text.as_bytes(), at: 0, x }
            }
            fn peek(&self) -> Token {
                match self.text.get(self.at) {
                    None => Token::End,
                    Some(c @ b'0'..=b'9') => Token::Number(f64::from(c - b'0')),
                    Some(c @ (b'a' | b'b' | b'c')) => Token::Name((c - b'a') as usize),
                    Some(&c) => Token::Sign(c as char),
                }
            }
            fn next(&mut self) -> Token {
                let token = self.peek();
                self.at += 1;
                token
            }
            fn atom(&mut self) -> Result<Var, String> {
                Ok(match self.next() {
                    Token::Number(n) => Var::from(n),
                    Token::Name(i) => *self.x.get(i).ok_or("no such name")?,
                    Token::Sign('(') => {
                        let inner = self.sum()?;
                        if self.next() != Token::Sign(')') {
                            return Err(String::from("open"));
                        }
                        inner
                    }
                    Token::Sign('|') => {
                        let inner = self.sum()?;
                        self.next();
                        if inner < 0.0 { -inner } else { inner }
                    }
                    other => return Err(format!("{other:?}")),
                })
            }
            fn product(&mut self) -> Result<Var, String> {
                let mut left = self.atom()?;
                loop {
                    match self.peek() {
                        Token::Sign('*') => {
                            self.next();
                            left *= self.atom()?;
                        }
                        Token::Sign('/') => {
                            self.next();
                            let right = self.atom()?;
                            if right == 0.0 {
                                return Err("division".into());
                            }
                            left /= right;
                        }
                        _ => break Ok(left),
                    }
                }
            }
            fn sum(&mut self) -> Result<Var, String> {
                let mut left = self.product()?;
                while let Token::Sign(sign @ ('+' | '-')) = self.peek() {
                    self.next();
                    let right = self.product()?;
                    if sign == '+' {
                        left += right;
                    } else {
                        left -= right;
                    }
                }
                Ok(left)
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let text = if x[0] > 1.0 { "a*(b+2)-|c|/a" } else { "|b-a|*3+c*c" };
            let mut parser = Parser::new(text, x);
            match parser.sum() {
                Ok(value) if parser.peek() == Token::End => value,
                Ok(_) => x[0],
                Err(text) => Var::from(text.len() as f64),
            }
        }
    }
    thermostat: inputs(4),
    plain {
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Carry)]
        enum State {
            #[default]
            Idle,
            Heating { since: u8 },
            Cooling(u8),
        }
    }
    traced {
        impl State {
            fn next(self, t: Var) -> State {
                match (self, t) {
                    (State::Idle, t) if t < -0.5 => State::Heating { since: 0 },
                    (State::Idle, t) if t > 0.5 => State::Cooling(0),
                    (State::Heating { since: 0..=1 }, _) => State::Heating { since: 2 },
                    (State::Heating { since }, t) if t < 0.0 && since < 4 => {
                        Self::Heating { since: since + 1 }
                    }
                    (Self::Cooling(n @ 0..3), t) if t > 0.0 => State::Cooling(n + 1),
                    _ => State::Idle,
                }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut state = State::default();
            let mut t = x[0];
            let mut energy = Var::from(0.0);
            for (i, outside) in x.iter().skip(1).cycle().take(5).enumerate() {
                state = state.next(t);
                let power = match state {
                    State::Idle => 0.0,
                    State::Heating { since: n } => 0.3 + 0.1 * f64::from(n),
                    State::Cooling(_) => -0.4,
                };
                t += (*outside - t) * 0.3 + power;
                energy += t * power;
                if state == State::Idle && i > 3 {
                    break;
                }
            }
            energy + t
        }
    }
    maps_as_state: inputs(4),
    plain {
        use std::collections::{BTreeMap, HashMap, VecDeque};
    }
    traced {
        fn group(x: &[Var]) -> BTreeMap<&'static str, Vec<Var>> {
            let mut groups: BTreeMap<&'static str, Vec<Var>> = BTreeMap::new();
            for &v in x {
                let name = if v > 1.0 { "high" } else if v > 0.0 { "middle" } else { "low" };
                groups.entry(name).or_default().push(v);
            }
            groups
        }
        pub fn run(x: &[Var]) -> Var {
            let groups = group(x);
            let mut memory: HashMap<usize, Var> = HashMap::new();
            let mut queue: VecDeque<Var> = VecDeque::new();
            for (name, values) in &groups {
                let sum: Var = values.iter().copied().sum();
                *memory.entry(values.len()).or_insert(x[0]) += sum;
                match *name {
                    "low" => queue.push_back(sum),
                    "high" => queue.push_front(sum * 2.0),
                    _ => {}
                }
            }
            let mut total = Var::from(0.0);
            while let Some(v) = queue.pop_front() {
                total += v;
                if total > 2.0 {
                    queue.clear();
                }
            }
            if let Some(v) = memory.get(&2) {
                total += *v;
            }
            total + memory.remove(&1).unwrap_or(x[1])
        }
    }
    mutual_recursion: inputs(2),
    traced {
        fn even(x: Var, depth: usize) -> Var {
            if depth == 0 || x.abs() < 0.1 {
                return x;
            }
            if x > 0.0 { odd(x * 0.5, depth - 1) + 1.0 } else { odd(-x, depth - 1) }
        }
        fn odd(x: Var, depth: usize) -> Var {
            match depth {
                0 => x * x,
                d if x > 1.0 => even(x - 1.0, d - 1),
                d => even(x + 0.25, d - 1) * 0.5,
            }
        }
        pub fn run(x: &[Var]) -> Var {
            even(x[0], 4) * x[1]
        }
    }
    expression_tree: inputs(3),
    plain {
        enum Expr {
            Input(usize),
            Constant(f64),
            Add(Box<Expr>, Box<Expr>),
            Mul(Box<Expr>, Box<Expr>),
            If { cond: Box<Expr>, yes: Box<Expr>, no: Box<Expr> },
            Sum(Vec<Expr>),
        }
    }
    traced {
        impl Expr {
            fn evaluate(&self, x: &[Var]) -> Var {
                match self {
                    Expr::Input(i) => x[*i],
                    &Expr::Constant(c) => Var::from(c),
                    Expr::Add(a, b) => a.evaluate(x) + b.evaluate(x),
                    Expr::Mul(a, b) => {
                        let left = a.evaluate(x);
                        if left == 0.0 { left } else { left * b.evaluate(x) }
                    }
                    Expr::If { cond, yes, no } => {
                        if cond.evaluate(x) > 0.0 { yes.evaluate(x) } else { no.evaluate(x) }
                    }
                    Expr::Sum(parts) => parts.iter().fold(Var::from(0.0), |s, e| s + e.evaluate(x)),
                }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            use Expr::*;
            let tree = Sum(vec![
                Mul(Box::new(Input(0)), Box::new(Input(1))),
                If {
                    cond: Box::new(Add(Box::new(Input(2)), Box::new(Constant(-0.5)))),
                    yes: Box::new(Mul(Box::new(Input(2)), Box::new(Input(2)))),
                    no: Box::new(Constant(3.0)),
                },
            ]);
            tree.evaluate(x)
        }
    }
    labelled_blocks: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let grade = 'grade: {
                if x[0] > 1.0 {
                    break 'grade 3;
                }
                let sum = 'sum: {
                    for &v in x {
                        if v < -1.0 {
                            break 'sum v * 2.0;
                        }
                        if v > 1.5 {
                            break 'grade 2;
                        }
                    }
                    x[0] + x[1]
                };
                if sum > 0.0 { 1 } else { 0 }
            };
            let mut left = grade;
            let found = 'outer: loop {
                for i in 0..3 {
                    if x[i] * left as f64 > 0.5 {
                        break 'outer Some(x[i]);
                    }
                    if left == 0 {
                        break 'outer None;
                    }
                }
                left -= 1;
            };
            match found {
                Some(v) => v * (grade + left) as f64 + x[2],
                None => x[1],
            }
        }
    }
    nested_options: inputs(4),
    traced {
        fn positive(x: Var) -> Result<Option<Var>, usize> {
            if x > 1.5 {
                Err(7)
            } else if x > 0.0 {
                Ok(Some(x))
            } else {
                Ok(None)
            }
        }
        fn both(a: Var, b: Var) -> Result<Option<Var>, usize> {
            let Some(a) = positive(a)? else { return Ok(None) };
            Ok(positive(b)?.map(|b| a * b))
        }
        fn chain(x: &[Var]) -> Option<Var> {
            let first = x.iter().find(|v| **v > 0.5)?;
            let last = x.iter().rev().find(|v| **v < 0.0)?;
            (*first > 1.0).then(|| *first - *last).or(Some(*last))
        }
        pub fn run(x: &[Var]) -> Var {
            let a = match both(x[0], x[1]) {
                Ok(Some(v)) => v,
                Ok(None) => x[2],
                Err(code) => Var::from(code as f64) * x[3],
            };
            let b = chain(x).unwrap_or_else(|| x[0] * 0.5);
            if let (Ok(Some(c)), d) | (Ok(None), d @ Some(c)) = (both(x[2], x[3]), chain(&x[1..]))
                && d.is_none_or(|d| d > c)
            {
                return a * c;
            }
            a + b
        }
    }
    slices_and_bindings: inputs(4),
    traced {
        fn fold(v: &[Var]) -> Var {
            match v {
                [] => Var::from(1.0),
                [only] => *only,
                [first, rest @ ..] if *first > 0.0 => *first + fold(rest),
                [first, middle @ .., last] => {
                    let inner = fold(middle);
                    if inner > *first { inner * *last } else { *first }
                }
            }
        }
        fn kind(n: i32) -> &'static str {
            match n {
                i32::MIN..=-1 => "minus",
                0 => "none",
                k @ (1 | 3 | 5) if k > 2 => "odd",
                1.. => "plus",
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let n = x.iter().filter(|v| **v > 0.0).count() as i32 - 1;
            let weight = kind(n).len() as f64;
            fold(x) * weight
        }
    }
}
