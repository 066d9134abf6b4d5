//! Generates random programs and inputs for them.

use super::program::{Operand, Program, Statement};
use phigrad::internals::Random;
use phigrad::internals::op::{MAX_ARITY, Op};

/// A distribution of random programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// The number of active inputs.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
    /// The approximate number of statements, without those that initialise the locals and those
    /// that sum up the result.
    pub statements: usize,
    /// The number of local variables, which bounds the number of live values.
    pub locals: usize,
    /// True if operands are not moved into the domains of primitives, so that values may be NaN
    /// or infinite. Otherwise values stay finite and small.
    pub wild: bool,
    /// The probability of an `if` in place of an assignment.
    pub guards: f64,
    /// The probability of a loop in place of an assignment.
    pub loops: f64,
    /// True if programs annotate their control flow as functions under [`traced`](phigrad::traced)
    /// do.
    pub annotated: bool,
    /// The number of counters: untraced state that branches depend on.
    pub counters: usize,
    /// The probability of a `break` or `continue` under a condition in a loop.
    pub jumps: f64,
    /// The probability of reading out the number of a traced value in place of an assignment.
    pub reads: f64,
    /// The probability of drawing a primitive from the whole list, not only from arithmetic.
    pub variety: f64,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            active: 3,
            inactive: 1,
            statements: 12,
            locals: 4,
            wild: false,
            guards: 0.15,
            loops: 0.05,
            annotated: false,
            counters: 0,
            jumps: 0.0,
            reads: 0.0,
            variety: 0.6,
        }
    }
}

const ARITHMETIC: [Op; 6] = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::MulAdd, Op::Neg];
const COMPARISONS: [Op; 6] = [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne];
/// Values at which comparisons change and derivatives jump.
const LANDMARKS: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1.5];
/// Inputs of wild programs.
const EXTREMES: [f64; 11] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    1e-310,
    1e200,
    -1e-200,
];
/// The largest depth of nested blocks.
const DEPTH: usize = 3;

impl Recipe {
    /// A random program.
    pub fn program(&self, random: &mut Random) -> Program {
        let mut generator = Generator { recipe: self, random, earlier: Vec::new(), loops: 0 };
        let locals = self.locals.max(1);
        let mut body: Vec<Statement> =
            (0..locals).map(|target| generator.first_value(target)).collect();
        body.extend(generator.block(self.statements, 0));
        body.extend((1..locals).map(|local| generator.sum_up(local)));
        let Recipe { active, inactive, counters, annotated, .. } = *self;
        Program { active, inactive, locals, counters, tame: !self.wild, annotated, body }
    }

    /// Active and inactive inputs for such a program. Some are values that programs compare with;
    /// wild ones may be extreme.
    pub fn inputs(&self, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
        let mut draw = |count| (0..count).map(|_| self.number(random)).collect();
        (draw(self.active), draw(self.inactive))
    }

    fn number(&self, random: &mut Random) -> f64 {
        if self.wild && random.chance(0.3) {
            random.pick(&EXTREMES)
        } else if random.chance(0.15) {
            random.pick(&LANDMARKS)
        } else {
            random.uniform(-2.0, 2.0)
        }
    }
}

/// The state of the generator of one program.
struct Generator<'a> {
    recipe: &'a Recipe,
    random: &'a mut Random,
    /// Earlier applications, for common subexpressions.
    earlier: Vec<(Op, [Operand; MAX_ARITY])>,
    /// The number of enclosing loops.
    loops: usize,
}

impl Generator<'_> {
    fn block(&mut self, statements: usize, depth: usize) -> Vec<Statement> {
        let mut block = Vec::new();
        let mut left = statements;
        while left > 0 {
            let nested = 1 + self.random.below(left.min(8));
            let may_nest = depth < DEPTH && left > 2;
            if may_nest && self.random.chance(self.recipe.guards) {
                block.push(self.conditional(nested, depth));
                left = left.saturating_sub(nested);
            } else if may_nest && self.random.chance(self.recipe.loops) {
                block.push(self.loop_statement(nested, depth));
                left = left.saturating_sub(nested);
            } else if self.loops > 0 && depth < DEPTH && self.random.chance(self.recipe.jumps) {
                block.push(self.jump());
                left -= 1;
            } else if self.recipe.counters > 0 && self.random.chance(0.2) {
                block.push(self.counting(depth));
                left -= 1;
            } else if self.random.chance(self.recipe.reads) {
                let value = self.operand();
                block.push(Statement::Read { target: self.local(), value });
                left -= 1;
            } else {
                self.assign(&mut block);
                left -= 1;
            }
        }
        block
    }

    fn loop_statement(&mut self, statements: usize, depth: usize) -> Statement {
        let most = 1 + self.random.below(4) as u32;
        self.loops += 1;
        let body = self.block(statements, depth + 1);
        self.loops -= 1;
        // Only with jumps, so that the programs of other recipes do not change.
        if self.recipe.jumps > 0.0 && self.random.chance(0.5) {
            let (left, right) = (self.operand(), self.operand());
            let comparison = self.random.pick(&COMPARISONS);
            Statement::While { comparison, left, right, most, body }
        } else {
            Statement::Repeat { times: most, body }
        }
    }

    /// A jump under a condition.
    fn jump(&mut self) -> Statement {
        let jump = Statement::Jump { exit: self.random.chance(0.5) };
        let (left, right) = (self.operand(), self.operand());
        let mut then = Vec::new();
        if self.random.chance(0.5) {
            self.assign(&mut then);
        }
        then.push(jump);
        let comparison = self.random.pick(&COMPARISONS);
        Statement::If { comparison, left, right, then, otherwise: Vec::new() }
    }

    /// A statement with a counter.
    fn counting(&mut self, depth: usize) -> Statement {
        let counter = self.random.below(self.recipe.counters);
        match self.random.below(3) {
            0 => Statement::Count { counter },
            1 => Statement::Number { target: self.local(), counter },
            _ => {
                let mut then = Vec::new();
                if depth < DEPTH && self.random.chance(0.5) {
                    then = self.block(2, depth + 1);
                } else {
                    self.assign(&mut then);
                }
                if self.loops > 0 && self.random.chance(self.recipe.jumps) {
                    then.push(Statement::Jump { exit: self.random.chance(0.5) });
                }
                Statement::IfCount { counter, below: 1 + self.random.below(4) as u64, then }
            }
        }
    }

    fn conditional(&mut self, statements: usize, depth: usize) -> Statement {
        let first = statements / 2;
        Statement::If {
            comparison: self.random.pick(&COMPARISONS),
            left: self.operand(),
            right: self.operand(),
            then: self.block(statements - first, depth + 1),
            otherwise: self.block(first, depth + 1),
        }
    }

    fn assign(&mut self, block: &mut Vec<Statement>) {
        let target = self.local();
        if !self.earlier.is_empty() && self.random.chance(0.1) {
            let (op, operands) = self.random.pick(&self.earlier);
            block.push(Statement::Assign { target, op, operands });
            return;
        }
        let op = match self.random.chance(self.recipe.variety) {
            true => self.random.pick(Op::ALL),
            false => self.random.pick(&ARITHMETIC),
        };
        let mut operands = [self.operand(), self.operand(), self.operand()];
        match op {
            // Only a read compares bits, and the derivative of `detach` is not that of its value.
            Op::Same | Op::Detach => return,
            // The shapes are constants.
            Op::BetaInc | Op::BetaDensity => {
                let shape = |random: &mut Random| Operand::Constant(random.uniform(0.5, 4.0));
                operands[1] = shape(self.random);
                operands[2] = shape(self.random);
            }
            Op::Powi => {
                let exponent = self.random.below(17) as f64 - 8.0;
                operands[1] = Operand::Constant(exponent);
            }
            Op::Select => {
                let comparison = self.random.pick(&COMPARISONS);
                let condition = self.local();
                let compared = [self.operand(), self.operand(), operands[0]];
                block.push(Statement::Assign {
                    target: condition,
                    op: comparison,
                    operands: compared,
                });
                operands[0] = Operand::Local(condition);
            }
            // The sign of NaN is unspecified and must not become the sign of a number.
            Op::CopySign if self.recipe.wild => operands[1] = self.never_nan(block, operands[1]),
            _ => {}
        }
        self.earlier.push((op, operands));
        block.push(Statement::Assign { target, op, operands });
    }

    /// A local with the value of `operand`, or 1 if that is NaN.
    fn never_nan(&mut self, block: &mut Vec<Statement>, operand: Operand) -> Operand {
        let target = self.local();
        let local = Operand::Local(target);
        let ordered = [operand, operand, operand];
        if let Operand::Local(index) = operand
            && index == target
        {
            return Operand::Constant(-1.0);
        }
        let chosen = [local, operand, Operand::Constant(1.0)];
        block.push(Statement::Assign { target, op: Op::Eq, operands: ordered });
        block.push(Statement::Assign { target, op: Op::Select, operands: chosen });
        local
    }

    /// Initialises a local with arithmetic on an input.
    fn first_value(&mut self, target: usize) -> Statement {
        let known = match target {
            0 => Operand::Constant(self.constant()),
            _ => Operand::Local(self.random.below(target)),
        };
        let op = self.random.pick(&ARITHMETIC);
        let operands = [self.input(target), known, self.operand()];
        Statement::Assign { target, op, operands }
    }

    /// Adds a local to the result, which is local 0.
    fn sum_up(&mut self, local: usize) -> Statement {
        let wild = [Op::Add, Op::Min, Op::Max, Op::Mul];
        let op = if self.recipe.wild { self.random.pick(&wild) } else { Op::Add };
        let operands = [Operand::Local(0), Operand::Local(local), Operand::Local(local)];
        Statement::Assign { target: 0, op, operands }
    }

    fn operand(&mut self) -> Operand {
        let draw = self.random.uniform(0.0, 1.0);
        if draw < 0.65 {
            Operand::Local(self.local())
        } else if draw < 0.85 {
            let any = self.random.below(self.recipe.active + self.recipe.inactive);
            self.input(any)
        } else {
            Operand::Constant(self.constant())
        }
    }

    /// Input number `index`, modulo the number of inputs.
    fn input(&mut self, index: usize) -> Operand {
        let Recipe { active, inactive, .. } = *self.recipe;
        match index.checked_rem(active + inactive) {
            None => Operand::Constant(self.constant()),
            Some(i) if i < active => Operand::Active(i),
            Some(i) => Operand::Inactive(i - active),
        }
    }

    fn constant(&mut self) -> f64 {
        self.recipe.number(self.random)
    }

    fn local(&mut self) -> usize {
        self.random.below(self.recipe.locals.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_program() {
        let text = |seed| Recipe::default().program(&mut Random::new(seed)).to_string();
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }

    #[test]
    fn tame_programs_are_finite_and_wild_ones_sometimes_are_not() {
        let mut random = Random::new(11);
        for wild in [false, true] {
            let recipe = Recipe { wild, statements: 40, reads: 0.1, ..Recipe::default() };
            let mut finite = 0;
            for _ in 0..200 {
                let program = recipe.program(&mut random);
                let (x, data) = recipe.inputs(&mut random);
                let value = program.eval(&x, &data);
                assert!(wild || value.is_finite(), "{program}\n{x:?} {data:?}: {value}");
                finite += usize::from(value.is_finite());
            }
            assert!(!wild || (20..180).contains(&finite), "{finite}");
        }
    }

    #[test]
    fn every_primitive_and_kind_of_statement_turns_up() {
        let recipe = Recipe { statements: 3000, reads: 0.05, ..Recipe::default() };
        let text = recipe.program(&mut Random::new(2)).to_string();
        for &op in Op::ALL.iter().filter(|op| !matches!(op, Op::Same | Op::Detach)) {
            assert!(text.contains(&format!("= {op} ")), "{op}");
        }
        for word in ["= read ", "if eq ", "} else {", "repeat 4 {", " d0", " x2", " t3"] {
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn programs_without_inputs_or_statements_run() {
        let recipe =
            Recipe { active: 0, inactive: 0, statements: 0, locals: 0, ..Recipe::default() };
        let program = recipe.program(&mut Random::new(0));
        assert!(program.eval::<f64>(&[], &[]).is_finite(), "{program}");
    }
}
