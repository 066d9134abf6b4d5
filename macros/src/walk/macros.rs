//! Macros: the known facts about their arguments, their possible effects, and the names that they
//! may declare.

use core::mem;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Macro, Pat, Token};

use super::{Bound, Walker};
use crate::captures::Access;
use crate::log::{JumpTarget, Kind, Projection, Variable};
use crate::places::place;
use crate::shape;
use crate::tokens;

/// The access to a name of which nothing is known.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum UnknownAccess {
    /// A read of its value.
    Read,
    /// Something may change through it, if it is a variable.
    Lend,
    /// It is changed, so it is a variable.
    Change,
}

/// The two arguments of `matches!`, and the condition.
fn question(tokens: TokenStream) -> syn::Result<(Expr, Pat, Option<Expr>)> {
    let parser = |input: ParseStream<'_>| {
        let expr = input.parse()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = match input.parse::<Option<Token![if]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        input.parse::<Option<Token![,]>>()?;
        Ok((expr, pattern, guard))
    };
    parser.parse2(tokens)
}

impl Walker {
    /// Walks through a macro. Returns the statements that have to be executed before it.
    pub(super) fn macro_call(&mut self, call: &Macro) -> Vec<TokenStream> {
        let nested = self.pins.take();
        let is_inside = self.inert && nested.is_none();
        self.pins = (!is_inside).then(Vec::new);
        let is_own = call.path.get_ident().is_some_and(|name| self.macros.contains(name));
        let arguments = if is_own { None } else { tokens::arguments(call) };
        self.without_rewriting(|walker| match arguments {
            Some(arguments) => {
                for mut argument in arguments {
                    match &mut argument {
                        // A named argument of a format string.
                        Expr::Assign(named) => walker.argument(&mut named.right),
                        Expr::Lit(literal) => walker.text(&quote!(#literal)),
                        other => walker.argument(other),
                    }
                }
            }
            None => match question(call.tokens.clone()) {
                Ok((mut expr, pattern, guard)) if !is_own && call.path.is_ident("matches") => {
                    walker.scrutinee(&mut expr, Some(&pattern));
                    walker.bind_pattern(&pattern, Bound { refutable: true, ..Bound::default() });
                    if let Some(mut guard) = guard {
                        walker.branch(|walker| walker.expr(&mut guard));
                    }
                }
                _ => {
                    walker.pins = None;
                    walker.unknown(call.tokens.clone());
                    walker.changes_of_macros();
                }
            },
        });
        if !is_own && shape::is_panic(call) {
            self.log.flow.begin_unreachable();
        }
        let pins = mem::replace(&mut self.pins, nested).unwrap_or_default();
        match &mut self.pins {
            Some(outer) => outer.extend(pins),
            None => return self.pins_of(pins),
        }
        Vec::new()
    }

    /// Notes the variables that a macro, called as a statement, may declare.
    pub(super) fn declares(&mut self, call: &Macro) {
        if tokens::arguments(call).is_none() {
            self.may_declare(call.tokens.clone());
        }
    }

    /// Notes the names in `tokens` that may be new variables.
    pub(super) fn may_declare(&mut self, tokens: TokenStream) {
        let at = self.log.entries.len();
        for name in tokens::variables(tokens) {
            if self.find(&name).is_none() {
                self.uncertain_names.push((name, at));
            }
        }
    }

    /// Notes a macro definition, which may refer to variables in scope.
    pub(super) fn macro_item(&mut self, item: &syn::ItemMacro) {
        self.log.has_macros = true;
        self.macros.extend(item.ident.clone());
        for name in tokens::variables(item.mac.tokens.clone()) {
            let variable = self.find(&name);
            if variable.is_some() || self.uncertain_names.iter().any(|(other, _)| *other == name) {
                self.meant.push((name, variable));
            }
        }
    }

    /// Notes the possible effects of the macros defined inside, whichever is called.
    fn changes_of_macros(&mut self) {
        for (name, variable) in self.meant.clone() {
            match variable {
                // Another variable has this name here.
                Some(variable) if self.find(&name) != Some(variable) => {
                    let at = self.log.bindings[variable].at;
                    self.push_unknown(name, at);
                }
                Some(variable) => self.touch(variable),
                None => self.note_unknown_name(&name, UnknownAccess::Lend),
            }
        }
    }

    /// Notes that anything may happen to `variable`.
    fn touch(&mut self, variable: Variable) {
        let kind = match self.log.bindings[variable].mutable {
            true => Kind::Change(true, Projection::default()),
            false => Kind::Lend(Vec::new()),
        };
        self.named(variable, &[], Access::Word);
        self.note_borrow(variable, &[]);
        self.mention(variable, &[]);
        self.push(variable, kind);
    }

    fn push_unknown(&mut self, name: Ident, at: usize) {
        self.log.unknown.push((name, at));
        let index = self.log.unknown.len() - 1;
        self.push_event(Kind::Unknown(index));
    }

    /// Notes an access to a name that is not found.
    fn note_unknown_name(&mut self, name: &Ident, access: UnknownAccess) {
        let declared = self.uncertain_names.iter().rev().find(|(other, _)| other == name);
        let at = match declared {
            Some((_, at)) => *at,
            // A constant is changed as a copy.
            None if access == UnknownAccess::Change
                && !name.to_string().starts_with(char::is_uppercase) =>
            {
                0
            }
            None => return,
        };
        match access {
            UnknownAccess::Read => self.push_event(Kind::Unseen),
            UnknownAccess::Lend | UnknownAccess::Change => self.push_unknown(name.clone(), at),
        }
    }

    /// Notes an access to the place `expr` if its variable is not found.
    pub(super) fn note_unknown_place(&mut self, expr: &Expr, access: UnknownAccess) {
        if let Some((name, _)) = place(expr)
            && self.find(name).is_none()
        {
            self.note_unknown_name(&name.clone(), access);
        }
    }

    /// Notes the variables in a format string: each name in braces may be one, also that of a
    /// width.
    pub(super) fn text(&mut self, literal: &TokenStream) {
        let text = literal.to_string();
        for part in text.split('{').skip(1) {
            let inside = part.split('}').next().unwrap_or_default();
            if inside.contains(":p") || inside.contains(":#p") {
                self.push_event(Kind::Unseen);
            }
            for name in inside.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let Ok(name) = syn::parse_str::<Ident>(name) else { continue };
                match self.find(&name) {
                    Some(variable) => {
                        self.note_use(variable, self.pins.is_some());
                        self.log_mention(variable, &[], Access::Word);
                        self.push(variable, Kind::Read);
                    }
                    None => self.note_unknown_name(&name, UnknownAccess::Read),
                }
            }
        }
    }

    /// Walks through tokens of unknown meaning: they may contain any code and any jump.
    pub(super) fn unknown(&mut self, tokens: TokenStream) {
        self.jump(JumpTarget::Unknown);
        self.log.flow.may_jump();
        self.text(&tokens);
        for name in tokens::idents(tokens) {
            match self.find(&name) {
                Some(variable) => self.touch(variable),
                None => self.note_unknown_name(&name, UnknownAccess::Lend),
            }
        }
    }

    /// Notes the effects of macros in a pattern.
    pub(super) fn bind_macros(&mut self, pattern: &Pat) {
        for tokens in shape::pattern_macros(pattern) {
            self.jump(JumpTarget::Unknown);
            self.log.flow.may_jump();
            self.may_declare(tokens);
        }
    }
}
