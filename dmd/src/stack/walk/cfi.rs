//! Rules from call frame information: they need no build flag, and none is looked up twice.

use super::modules::{self, Seal};
use super::rule::{CodeAddress, FoundRule, Packed, Plain};
use super::rules::{Known, Rules};

static RULES: Rules = Rules::new();

/// The rule of the code there, if it is plain, stays, and was looked up before.
#[inline(always)]
pub(crate) fn plain(code: usize) -> Option<Plain> {
    RULES.plain(code)
}

/// The rule of the code there.
pub(crate) fn look_up(place: CodeAddress) -> Option<FoundRule> {
    match RULES.get(place.code) {
        Some(Known::Fixed(rule)) => Some(FoundRule { rule, is_fixed: true }),
        known => find(place, known),
    }
}

fn find(place: CodeAddress, known: Option<Known>) -> Option<FoundRule> {
    if let Some(Known::Loose(rule)) = known
        && modules::seal(place.code).is_some_and(|seal| RULES.is_sealed(place.code, rule, seal))
    {
        return Some(FoundRule { rule, is_fixed: false });
    }
    // What is unknown now may be known later: nothing is remembered of it.
    let found = modules::find(place.code)?;
    let rule = Packed::new(found.unwind_info.rule(place)?);
    match found.seal {
        Seal::Fixed => RULES.put(place.code, rule),
        Seal::Loose(seal) => RULES.put_loose(place.code, rule, seal),
        Seal::None => {}
    }
    Some(FoundRule { rule, is_fixed: found.seal == Seal::Fixed })
}
