//! Lanes: values of one element, or of two elements of a batch in one vector.
//!
//! With two lanes a number is a vector of two, a truth is a mask, and each entry of a buffer has
//! the numbers of both elements next to each other. Both take the same path: a guard fails if it
//! fails for either of them, and a branch in which they differ is a side exit. Iteration numbers
//! are those of both.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, F64X2, I8, I64, I64X2};
use cranelift_codegen::ir::{ConstantData, InstBuilder, MemFlagsData, Type, Value};
use smallvec::SmallVec;

use super::Lanes;
use super::lower::Lowering;
use crate::ssa::Region;

impl Lowering<'_, '_> {
    /// The type of a number.
    pub(super) fn number_type(&self) -> Type {
        match self.lanes {
            Lanes::One => F64,
            Lanes::Two => F64X2,
        }
    }

    /// The flags of loads and stores: the kernel checks the sizes of the buffers, so all addresses
    /// are inside them.
    pub(super) fn flags(&self) -> MemFlagsData {
        match self.lanes {
            Lanes::One => MemFlagsData::trusted(),
            Lanes::Two => MemFlagsData::new().with_notrap(),
        }
    }

    /// The offset in bytes of entry number `index` of a buffer.
    pub(super) fn offset(&self, index: u32) -> i32 {
        // `MAX_SIZE` keeps all buffers below 2^31 bytes.
        index as i32 * self.entry_bytes()
    }

    /// The size of an entry of a buffer.
    pub(super) fn entry_bytes(&self) -> i32 {
        match self.pairs {
            Some(_) => 8,
            None => 8 * self.lanes.count() as i32,
        }
    }

    /// The binary logarithm of that.
    pub(super) fn entry_shift(&self) -> i64 {
        i64::from(self.entry_bytes().trailing_zeros())
    }

    pub(super) fn constant(&mut self, number: f64) -> Value {
        match self.lanes {
            Lanes::One => self.builder.ins().f64const(number),
            Lanes::Two => {
                let bytes = [number.to_le_bytes(); 2].concat();
                let data = self.builder.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
                self.builder.ins().vconst(F64X2, data)
            }
        }
    }

    /// `then` where `truth` holds, elsewhere `otherwise`.
    pub(super) fn choose(&mut self, truth: Value, then: Value, otherwise: Value) -> Value {
        match self.lanes {
            Lanes::One => self.builder.ins().select(truth, then, otherwise),
            Lanes::Two => {
                let mask = self.builder.ins().bitcast(F64X2, MemFlagsData::new(), truth);
                self.builder.ins().bitselect(mask, then, otherwise)
            }
        }
    }

    pub(super) fn negated(&mut self, truth: Value) -> Value {
        match self.lanes {
            Lanes::One => {
                let zero = self.builder.ins().iconst(I8, 0);
                self.builder.ins().icmp(IntCC::Equal, truth, zero)
            }
            Lanes::Two => self.builder.ins().bnot(truth),
        }
    }

    /// The test whether `truth` holds for an element, as an integer.
    pub(super) fn any(&mut self, truth: Value) -> Value {
        match self.lanes {
            Lanes::One => truth,
            Lanes::Two => self.builder.ins().vany_true(truth),
        }
    }

    /// The test whether `truth` holds for all elements, as an integer.
    pub(super) fn all(&mut self, truth: Value) -> Value {
        match self.lanes {
            Lanes::One => truth,
            Lanes::Two => self.builder.ins().vall_true(truth),
        }
    }

    /// The bits of a number.
    pub(super) fn number_bits(&mut self, number: Value) -> Value {
        let bits = match self.lanes {
            Lanes::One => I64,
            Lanes::Two => I64X2,
        };
        self.builder.ins().bitcast(bits, MemFlagsData::new(), number)
    }

    /// The absolute value of `a` with the sign of `b`.
    pub(super) fn copy_sign(&mut self, a: Value, b: Value) -> Value {
        match self.lanes {
            Lanes::One => self.builder.ins().fcopysign(a, b),
            Lanes::Two => {
                let sign = self.constant(-0.0);
                self.builder.ins().bitselect(sign, b, a)
            }
        }
    }

    /// The iteration number of `region` as a number.
    pub(super) fn iteration(&mut self, region: Region) -> Value {
        let number = self.counter(region);
        let first = self.builder.ins().fcvt_from_sint(F64, number);
        if self.lanes == Lanes::One {
            return first;
        }
        let both = self.builder.ins().splat(F64X2, first);
        if !self.is_paired(region) {
            return both;
        }
        let next = self.builder.ins().iadd_imm_s(number, 1);
        let second = self.builder.ins().fcvt_from_sint(F64, next);
        self.builder.ins().insertlane(both, second, 1)
    }

    /// The test whether the iteration number of a loop is less than a number.
    pub(super) fn is_before(&mut self, (region, most): (Region, u32)) -> Value {
        let number = self.counter(region);
        let is_less = |lowering: &mut Self, most: i64| {
            lowering.builder.ins().icmp_imm_s(IntCC::SignedLessThan, number, most)
        };
        let truth = is_less(self, i64::from(most));
        if self.lanes == Lanes::One {
            return truth;
        }
        let mask = self.builder.ins().bmask(I64, truth);
        let both = self.builder.ins().splat(I64X2, mask);
        if !self.is_paired(region) {
            return both;
        }
        let second = is_less(self, i64::from(most) - 1);
        let mask = self.builder.ins().bmask(I64, second);
        self.builder.ins().insertlane(both, mask, 1)
    }

    /// Calls `scalar`, a function of single numbers, for each lane of the operands.
    pub(super) fn per_lane(
        &mut self,
        args: &[Value],
        mut scalar: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> Value {
        if self.lanes == Lanes::One {
            return scalar(self, args);
        }
        let [first, second] = [0, 1].map(|lane| {
            let args: SmallVec<[Value; 3]> =
                args.iter().map(|&arg| self.builder.ins().extractlane(arg, lane)).collect();
            scalar(self, &args)
        });
        let vector = self.builder.ins().scalar_to_vector(F64X2, first);
        self.builder.ins().insertlane(vector, second, 1)
    }
}
