//! RuleCache from call frame information: they need no build flag, and none is found up twice.

use super::modules::{self, Identity};
use super::rule::{CodeAddress, FoundRule, PackedRule, PlainRule};
use super::rule_cache::{CachedRule, RuleCache};

static RULES: RuleCache = RuleCache::new();

/// The rule of the code there, if it is plain, stays, and was found up before.
#[inline(always)]
pub(crate) fn cached_plain(code: usize) -> Option<PlainRule> {
    RULES.plain(code)
}

/// The rule of the code there.
pub(crate) fn look_up(place: CodeAddress) -> Option<FoundRule> {
    match RULES.get(place.code) {
        Some(CachedRule::Permanent(rule)) => Some(FoundRule { rule, is_fixed: true }),
        known => look_up_uncached(place, known),
    }
}

fn look_up_uncached(place: CodeAddress, known: Option<CachedRule>) -> Option<FoundRule> {
    if let Some(CachedRule::Unloadable(rule)) = known
        && modules::fingerprint(place.code)
            .is_some_and(|fingerprint| RULES.matches_module(place.code, rule, fingerprint))
    {
        return Some(FoundRule { rule, is_fixed: false });
    }
    // What is unknown now may be known later: nothing is remembered of it.
    let found = modules::find(place.code)?;
    let rule = PackedRule::new(found.unwind_info.rule(place)?);
    match found.identity {
        Identity::Permanent => RULES.insert(place.code, rule),
        Identity::Fingerprint(fingerprint) => {
            RULES.insert_unloadable(place.code, rule, fingerprint)
        }
        Identity::Unknown => {}
    }
    Some(FoundRule { rule, is_fixed: found.identity == Identity::Permanent })
}
