//! The query of a profile endpoint.

/// The parameters that have an effect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    /// The duration of a growth profile; 0 for a profile of this moment.
    pub(super) seconds: u64,
    pub(super) is_text: bool,
    /// True if samples have the ids of their spans.
    pub(super) has_spans: bool,
}

impl Query {
    /// Parses a query, with or without its question mark.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        const HOUR: u64 = 3600;
        let mut parsed = Query { seconds: 0, is_text: false, has_spans: false };
        let query = query.strip_prefix('?').unwrap_or(query);
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let number =
                || value.parse::<u64>().map_err(|_| format!("{key} is {value:?}: give a number"));
            match key {
                "seconds" => parsed.seconds = number()?,
                "debug" => parsed.is_text = number()? > 0,
                "spans" => parsed.has_spans = number()? > 0,
                // Other parameters of pprof's clients have no effect.
                _ => {}
            }
        }
        match parsed {
            Query { seconds: HOUR.., .. } => Err("seconds: at most 3599".to_owned()),
            Query { seconds: 1.., is_text: true, .. } => {
                Err("seconds and debug: there is no text of what grows".to_owned())
            }
            _ => Ok(parsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn queries_are_parsed_or_rejected() {
        let ok = |seconds, is_text| Ok(Query { seconds, is_text, has_spans: false });
        assert!(Query::parse("spans=1&gc=1").is_ok_and(|query| query.has_spans));
        for (query, expected) in [
            ("", ok(0, false)),
            ("?gc=1", ok(0, false)),
            ("seconds=5&gc=1", ok(5, false)),
            ("debug=1", ok(0, true)),
            ("debug=0&seconds=0", ok(0, false)),
            ("seconds=x", Err("seconds is \"x\": give a number".to_owned())),
            ("seconds=-1", Err("seconds is \"-1\": give a number".to_owned())),
            ("seconds=3600", Err("seconds: at most 3599".to_owned())),
            (
                "seconds=1&debug=2",
                Err("seconds and debug: there is no text of what grows".to_owned()),
            ),
        ] {
            assert_eq!(Query::parse(query), expected, "{query}");
        }
    }
}
