//! Puts mutants behind switches, so that one build contains them all: `a + b` becomes
//! `(if crate::planted_defects::on(7) {a - b} else {a + b})`.

use std::ops::{Range, RangeInclusive};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, Expr, ExprBinary, ExprUnary, Pat};

use super::list::{Mutant, Place};
use crate::failure::Failure;

/// The module that tells which switches are on, for the first file of a crate.
pub(super) const MODULE: &str = include_str!("switch.txt");

/// A file with switches.
#[derive(Debug)]
pub(super) struct Switched {
    pub(super) text: String,
    /// The mutants in it, and the lines where their code may fail to compile. No line moves.
    pub(super) lines: Vec<(usize, RangeInclusive<usize>)>,
}

/// A change of a file.
#[derive(Debug)]
struct Edit {
    mutant: usize,
    range: Range<usize>,
    with: String,
    lines: RangeInclusive<usize>,
}

/// Puts those of a file's mutants behind switches that can be: no two of the same place, and
/// neither a condition with `let` nor a field that is left out. Switches have the mutants' numbers.
pub(super) fn insert(text: &str, mutants: &[(usize, &Mutant)]) -> Result<Switched, Failure> {
    let offsets = Offsets::of(text);
    let mut search = Search { text, offsets: &offsets, mutants, edits: Vec::new() };
    for &(number, mutant) in mutants.iter().filter(|(_, mutant)| mutant.genre == "FnValue") {
        let start = offsets.at(mutant.start);
        let with = format!("if {} {{ return {}; }} ", switch(number), mutant.replacement);
        search.add(number, start..start, with);
    }
    search.visit_file(&syn::parse_file(text)?);
    let mut edits = search.edits;
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut switched = Switched { text: String::with_capacity(text.len()), lines: Vec::new() };
    let mut done = 0;
    for edit in edits {
        if edit.range.start < done {
            continue;
        }
        switched.text.push_str(&text[done..edit.range.start]);
        switched.text.push_str(&edit.with);
        switched.lines.push((edit.mutant, edit.lines));
        done = edit.range.end;
    }
    switched.text.push_str(&text[done..]);
    Ok(switched)
}

/// Returns the text with the mutant in place of the original.
pub(super) fn replace(text: &str, mutant: &Mutant) -> String {
    let offsets = Offsets::of(text);
    let (start, end) = (offsets.at(mutant.start), offsets.at(mutant.end));
    format!("{}{}{}", &text[..start], mutant.replacement, &text[end..])
}

fn switch(number: usize) -> String {
    format!("crate::planted_defects::on({number})")
}

/// Finds the code around mutants that are a part of an expression.
struct Search<'a> {
    text: &'a str,
    offsets: &'a Offsets<'a>,
    mutants: &'a [(usize, &'a Mutant)],
    edits: Vec<Edit>,
}

impl Search<'_> {
    fn add(&mut self, mutant: usize, range: Range<usize>, with: String) {
        let line = |offset: usize| self.text[..offset].matches('\n').count() + 1;
        let lines = line(range.start)..=line(range.end);
        self.edits.push(Edit { mutant, range, with, lines });
    }

    /// Returns the mutants of a genre that begin at a place.
    fn of(&self, genre: &str, start: Place) -> Vec<(usize, Mutant)> {
        let are = |(_, mutant): &&(usize, &Mutant)| mutant.genre == genre && mutant.start == start;
        self.mutants.iter().filter(are).map(|&(number, mutant)| (number, mutant.clone())).collect()
    }

    /// Puts the mutants of a genre that begin at a place within an expression behind switches.
    fn switch_part(&mut self, genre: &str, part: Place, whole: &Expr) {
        let range = self.offsets.range(whole);
        let original = &self.text[range.clone()];
        if has_let(whole) {
            return;
        }
        for (number, mutant) in self.of(genre, part) {
            let start = self.offsets.at(mutant.start) - range.start;
            let end = self.offsets.at(mutant.end) - range.start;
            let (before, after) = (&original[..start], &original[end..]);
            let changed = format!("{before}{}{after}", mutant.replacement);
            let with = format!("(if {} {{{changed}}} else {{{original}}})", switch(number));
            self.add(number, range.clone(), with);
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(ExprBinary { op, .. }) => {
                self.switch_part("BinaryOperator", start(op), expr);
            }
            Expr::Unary(ExprUnary { op, .. }) => {
                self.switch_part("UnaryOperator", start(op), expr);
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let arms = self.of("MatchArm", start(arm));
        if let Pat::Guard(guarded) = &arm.pat {
            self.switch_part("MatchArmGuard", start(&*guarded.guard), &guarded.guard);
            let range = self.offsets.range(&*guarded.guard);
            for (number, _) in arms.iter().filter(|_| !has_let(&guarded.guard)) {
                let with = format!("!{} && ({})", switch(*number), &self.text[range.clone()]);
                self.add(*number, range.clone(), with);
            }
        } else {
            let end = self.offsets.range(&arm.pat).end;
            for (number, _) in arms {
                self.add(number, end..end, format!(" if !{}", switch(number)));
            }
        }
        visit::visit_arm(self, arm);
    }
}

/// Returns whether a condition has a part that binds names.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(ExprBinary { left, right, .. }) => has_let(left) || has_let(right),
        _ => false,
    }
}

fn start(node: &impl Spanned) -> Place {
    place(node.span().start())
}

fn place(at: proc_macro2::LineColumn) -> Place {
    Place { line: at.line, column: at.column + 1 }
}

/// The offsets of lines.
struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Offsets { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    fn at(&self, place: Place) -> usize {
        let line = self.lines[place.line - 1];
        let mut characters = self.text[line..].char_indices();
        characters.nth(place.column - 1).map_or(self.text.len(), |(at, _)| line + at)
    }

    fn range(&self, node: &impl Spanned) -> Range<usize> {
        let span = node.span();
        self.at(place(span.start()))..self.at(place(span.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a mutant of the first place where `original` is found.
    fn mutant(text: &str, genre: &str, original: &str, replacement: &str) -> Mutant {
        let at = text.find(original).unwrap();
        let place = |offset: usize| {
            let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
            let column = text[line_start..offset].chars().count() + 1;
            Place { line: text[..offset].matches('\n').count() + 1, column }
        };
        Mutant {
            name: String::new(),
            package: String::new(),
            file: String::new(),
            genre: genre.to_owned(),
            returns: String::new(),
            start: place(at),
            end: place(at + original.len()),
            replacement: replacement.to_owned(),
        }
    }

    fn switched(text: &str, genre: &str, original: &str, replacement: &str) -> String {
        let mutant = mutant(text, genre, original, replacement);
        insert(text, &[(7, &mutant)]).unwrap().text.replace("crate::planted_defects::on", "on")
    }

    #[test]
    fn each_kind_of_mutant_gets_a_switch() {
        let text = "fn f() -> u8 {\n    é(1); 2 + 3\n}\n";
        let body = switched(text, "FnValue", "é(1); 2 + 3", "0");
        assert_eq!(body, "fn f() -> u8 {\n    if on(7) { return 0; } é(1); 2 + 3\n}\n");
        let operator = switched(text, "BinaryOperator", "+", "-");
        assert_eq!(operator, "fn f() -> u8 {\n    é(1); (if on(7) {2 - 3} else {2 + 3})\n}\n");
        let not = switched("fn f() { !true; }", "UnaryOperator", "!", "");
        assert_eq!(not, "fn f() { (if on(7) {true} else {!true}); }");
        let text = "fn f() { match x { 1 => a, 2 if b && c => d, _ => e } }";
        let arm = switched(text, "MatchArm", "1 => a", "");
        assert_eq!(arm, "fn f() { match x { 1 if !on(7) => a, 2 if b && c => d, _ => e } }");
        let arm = switched(text, "MatchArm", "2 if b && c => d", "");
        let expected = "fn f() { match x { 1 => a, 2 if !on(7) && (b && c) => d, _ => e } }";
        assert_eq!(arm, expected);
        let guard = switched(text, "MatchArmGuard", "b && c", "true");
        let expected = "(if on(7) {true} else {b && c})";
        assert_eq!(guard, text.replace("b && c", expected));
    }

    #[test]
    fn what_has_no_switch_is_left_out() {
        for (text, original) in [
            ("fn f() { if let Some(a) = b && c {} }", "&&"),
            ("fn f() { match x { y if let Some(a) = b && c => d } }", "&&"),
        ] {
            let mutant = mutant(text, "BinaryOperator", original, "||");
            let switched = insert(text, &[(7, &mutant)]).unwrap();
            assert_eq!((switched.text.as_str(), switched.lines.len()), (text, 0));
            assert_eq!(replace(text, &mutant), text.replace("&&", "||"));
        }
    }

    #[test]
    fn of_mutants_at_the_same_place_one_gets_a_switch() {
        let text = "fn f() {\n    a ==\n b\n}";
        let mutants =
            [mutant(text, "BinaryOperator", "==", "!="), mutant(text, "FnValue", "a", "")];
        let of = |first, second| vec![(first, &mutants[0]), (second, &mutants[0])];
        let switched = insert(text, &of(1, 2)).unwrap();
        assert_eq!(switched.lines, [(1, 2..=3)]);
        let both = insert(text, &[(1, &mutants[0]), (2, &mutants[1])]).unwrap();
        assert_eq!(both.lines, [(2, 2..=2), (1, 2..=3)]);
    }
}
