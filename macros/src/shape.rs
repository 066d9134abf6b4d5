//! Predicates on the syntax of expressions, patterns and types.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{BinOp, Block, Expr, Label, Lifetime, Macro, Pat, PatIdent, Stmt, Token, Type, UnOp};

use crate::tokens;

/// The names in a pattern that may be variables, each once, in order.
pub fn names(pattern: &Pat) -> Vec<PatIdent> {
    struct Names(Vec<PatIdent>);
    impl Visit<'_> for Names {
        fn visit_pat_ident(&mut self, name: &PatIdent) {
            let known = self.0.iter().any(|other| other.ident == name.ident);
            if name.ident != "None" && !known {
                self.0.push(name.clone());
            }
            visit::visit_pat_ident(self, name);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}

/// Declares all names in `pattern` with `mut`. Returns whether any was not.
pub fn make_mutable(pattern: &mut Pat) -> bool {
    struct Names(bool);
    impl VisitMut for Names {
        fn visit_pat_ident_mut(&mut self, name: &mut PatIdent) {
            self.0 |= name.mutability.is_none();
            name.mutability.get_or_insert(Token![mut](Span::mixed_site()));
        }
    }
    let mut names = Names(false);
    names.visit_pat_mut(pattern);
    names.0
}

/// Tests whether `function` is, by its name, a constructor of a variant or struct.
pub fn makes(function: &Expr) -> bool {
    let Expr::Path(path) = function else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| {
        let name = last.ident.to_string();
        // A name in capitals may be a static function pointer.
        name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
    })
}

/// Tests for `+=` and the like.
pub fn assigns(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Tests whether `expr` only reads variables, so that its evaluation records nothing.
pub fn is_trivial(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Field(field) => is_trivial(&field.base),
        Expr::Paren(paren) => is_trivial(&paren.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_trivial(&unary.expr),
        Expr::Binary(binary) => {
            matches!(binary.op, BinOp::And(_) | BinOp::Or(_))
                && is_trivial(&binary.left)
                && is_trivial(&binary.right)
        }
        _ => false,
    }
}

/// Tests whether a place expression can be evaluated twice: it has no side effects.
pub fn is_simple_place(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Field(field) => is_simple_place(&field.base),
        Expr::Paren(paren) => is_simple_place(&paren.expr),
        Expr::Unary(unary) => is_simple_place(&unary.expr),
        Expr::Index(index) => is_simple_place(&index.expr) && is_simple_place(&index.index),
        Expr::Cast(cast) => is_simple_place(&cast.expr),
        Expr::Binary(binary) => {
            !assigns(&binary.op)
                && !matches!(binary.op, BinOp::And(_) | BinOp::Or(_))
                && is_simple_place(&binary.left)
                && is_simple_place(&binary.right)
        }
        Expr::MethodCall(call) => is_simple_place(&call.receiver) && call.args.is_empty(),
        Expr::Range(range) => {
            [&range.start, &range.end].into_iter().flatten().all(|end| is_simple_place(end))
        }
        _ => false,
    }
}

/// Tests whether `expr` diverges, as far as its text shows.
pub fn diverges(expr: &Expr) -> bool {
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Macro(call) => is_panic(&call.mac),
        Expr::Block(block) => block.label.is_none() && block_diverges(&block.block),
        Expr::Unsafe(block) => block_diverges(&block.block),
        Expr::Paren(paren) => diverges(&paren.expr),
        Expr::If(branch) => {
            diverges(&branch.cond)
                || (block_diverges(&branch.then_branch)
                    && branch.else_branch.as_ref().is_some_and(|(_, other)| diverges(other)))
        }
        Expr::Match(choice) => {
            diverges(&choice.expr) || choice.arms.iter().all(|arm| diverges(&arm.body))
        }
        Expr::Loop(loop_expr) => breaks(&loop_expr.body, loop_expr.label.as_ref()) == Breaks::Never,
        _ => false,
    }
}

pub fn block_diverges(block: &Block) -> bool {
    block.stmts.iter().any(|statement| match statement {
        Stmt::Expr(expr, _) => diverges(expr),
        Stmt::Macro(call) => is_panic(&call.mac),
        Stmt::Local(local) => local.init.as_ref().is_some_and(|init| diverges(&init.expr)),
        Stmt::Item(_) => false,
    })
}

pub fn is_panic(call: &Macro) -> bool {
    let name = call.path.segments.last().map(|segment| segment.ident.to_string());
    ["panic", "unreachable", "todo", "unimplemented"].iter().any(|p| name.as_deref() == Some(*p))
}

/// Tests whether a loop has no exits in its text but for macros.
pub fn exits_by_macros_only(expr: &Expr) -> bool {
    match expr {
        Expr::Loop(loop_expr) => breaks(&loop_expr.body, loop_expr.label.as_ref()) == Breaks::Maybe,
        _ => false,
    }
}

/// The exits of a loop in its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Breaks {
    Never,
    /// Only in a macro with unknown content.
    Maybe,
    Somewhere,
}

/// The exits of a loop with this body and label.
fn breaks(block: &Block, label: Option<&Label>) -> Breaks {
    struct Finder<'a> {
        label: Option<&'a Lifetime>,
        depth: usize,
        found: Breaks,
    }
    impl Visit<'_> for Finder<'_> {
        fn visit_expr(&mut self, expr: &Expr) {
            match expr {
                Expr::Break(jump) => {
                    let leaves = match &jump.label {
                        Some(label) => Some(label) == self.label,
                        None => self.depth == 0,
                    };
                    self.found =
                        self.found.max([Breaks::Never, Breaks::Somewhere][leaves as usize]);
                    visit::visit_expr(self, expr);
                }
                Expr::Closure(_) | Expr::Async(_) => {}
                Expr::Loop(_) | Expr::While(_) | Expr::ForLoop(_) => {
                    self.depth += 1;
                    visit::visit_expr(self, expr);
                    self.depth -= 1;
                }
                _ => visit::visit_expr(self, expr),
            }
        }

        fn visit_macro(&mut self, call: &Macro) {
            let jumps = |name: &Ident| name == "break";
            if tokens::arguments(call).is_none()
                || tokens::idents(call.tokens.clone()).iter().any(jumps)
            {
                self.found = self.found.max(Breaks::Maybe);
            }
        }

        fn visit_item(&mut self, _: &syn::Item) {}
    }
    let mut finder =
        Finder { label: label.map(|label| &label.name), depth: 0, found: Breaks::Never };
    finder.visit_block(block);
    finder.found
}

/// Tests whether `block` has macros that may jump out of it.
pub fn has_unknown_macros(block: &Block) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_macro(&mut self, call: &Macro) {
            self.0 |= may_jump(call);
        }

        fn visit_item(&mut self, _: &syn::Item) {}
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

/// Tests whether a macro may contain a jump, as far as its text shows.
fn may_jump(call: &Macro) -> bool {
    let jumps = |name: &Ident| name == "break" || name == "continue";
    tokens::arguments(call).is_none() && !call.path.is_ident("matches")
        || tokens::idents(call.tokens.clone()).iter().any(jumps)
}

/// Tests whether `block` has control flow or assignments, which the walk would rewrite.
pub fn has_control_flow(block: &Block) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 |= match expr {
                Expr::Binary(binary) => {
                    assigns(&binary.op) || matches!(binary.op, BinOp::And(_) | BinOp::Or(_))
                }
                Expr::Assign(_) | Expr::If(_) | Expr::Match(_) | Expr::Loop(_) | Expr::While(_) => {
                    true
                }
                Expr::ForLoop(_) | Expr::Return(_) | Expr::Try(_) => true,
                Expr::Break(_) | Expr::Continue(_) => true,
                _ => false,
            };
            visit::visit_expr(self, expr);
        }
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

pub fn has_closure(expr: &Expr) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {
            self.0 = true;
        }
    }
    let mut finder = Finder(false);
    finder.visit_expr(expr);
    finder.0
}

/// Tests whether the items of this iterator are certainly no mutable references.
pub fn shares_items(expr: &Expr) -> bool {
    if tokens::idents(expr.to_token_stream()).iter().any(|name| name.to_string().contains("mut")) {
        return false;
    }
    fn shares(expr: &Expr) -> bool {
        match expr {
            Expr::MethodCall(call) => {
                let own = ["iter", "windows", "chunks", "chunks_exact", "chars", "bytes", "keys"];
                own.iter().any(|name| call.method == name) || shares(&call.receiver)
            }
            Expr::Paren(paren) => shares(&paren.expr),
            Expr::Range(_) => true,
            Expr::Reference(reference) => reference.mutability.is_none(),
            _ => false,
        }
    }
    shares(expr)
}

/// Tests whether a variable with this value is certainly no mutable reference.
pub fn is_plain_value(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Closure(_) | Expr::Range(_) | Expr::Cast(_) => true,
        Expr::Array(_) | Expr::Repeat(_) => true,
        Expr::Binary(_) => true,
        Expr::Macro(call) => call.mac.path.is_ident("vec") || call.mac.path.is_ident("format"),
        Expr::Reference(reference) => reference.mutability.is_none(),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_) | UnOp::Not(_)),
        Expr::Paren(paren) => is_plain_value(&paren.expr),
        _ => false,
    }
}

/// Tests whether a variable of this type is certainly no mutable reference.
pub fn is_plain_type(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_none(),
        Type::Array(_) | Type::Slice(_) | Type::BareFn(_) | Type::Ptr(_) => true,
        Type::Path(_) => !has_lifetime(ty.to_token_stream()),
        _ => false,
    }
}

/// Tests whether `tokens` contain a lifetime, a reference or an opaque type, so that a value may
/// refer to others.
pub fn has_lifetime(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => ['\'', '&'].contains(&punct.as_char()),
        TokenTree::Ident(name) => ["impl", "dyn", "_"].iter().any(|word| name == word),
        TokenTree::Group(group) => has_lifetime(group.stream()),
        TokenTree::Literal(_) => false,
    })
}

/// The arguments of macros in `pattern`.
pub fn pattern_macros(pattern: &Pat) -> Vec<TokenStream> {
    struct Finder(Vec<TokenStream>);
    impl Visit<'_> for Finder {
        fn visit_macro(&mut self, call: &Macro) {
            self.0.push(call.tokens.clone());
        }
    }
    let mut finder = Finder(Vec::new());
    finder.visit_pat(pattern);
    finder.0
}
