//! Unwind rules from call frame information (CFI), through the cache of rules.

use super::modules::{self, Identity};
use super::rule::{CodeAddress, FoundRule, PackedRule};
use super::rule_cache::{CachedRule, PlainRules, RuleCache};

static RULES: RuleCache = RuleCache::new();

/// Returns the cached rules that are plain and permanent, once there are any.
#[inline(always)]
pub(crate) fn plain_rules() -> Option<PlainRules> {
    RULES.plain_rules()
}

/// Returns the rule of this code, and caches it.
pub(crate) fn look_up(place: CodeAddress) -> Option<FoundRule> {
    match RULES.get(place.code) {
        Some(CachedRule::Permanent(rule)) => Some(FoundRule { rule, is_permanent: true }),
        cached => look_up_uncached(place, cached),
    }
}

fn look_up_uncached(place: CodeAddress, cached: Option<CachedRule>) -> Option<FoundRule> {
    if let Some(CachedRule::Unloadable(rule)) = cached
        && modules::fingerprint(place.code)
            .is_some_and(|fingerprint| RULES.matches_module(place.code, rule, fingerprint))
    {
        return Some(FoundRule { rule, is_permanent: false });
    }
    // A failure is not cached: a later look-up may succeed.
    let found = modules::find(place.code)?;
    let rule = PackedRule::new(found.unwind_info.rule(place)?);
    match found.identity {
        Identity::Permanent => RULES.insert(place.code, rule),
        Identity::Fingerprint(fingerprint) => {
            RULES.insert_unloadable(place.code, rule, fingerprint);
        }
        Identity::Unknown => {}
    }
    Some(FoundRule { rule, is_permanent: found.identity == Identity::Permanent })
}
