//! Validates a file against a JSON schema, in the subset that schemas of file formats use.

use serde_json::Value;

use crate::failure::Failure;

/// Returns the first place where `value` violates the schema, if there is one.
///
/// # Errors
///
/// For keywords of the schema language that are not implemented here: they would go unchecked.
pub(crate) fn violation(root: &Value, value: &Value) -> Result<Option<String>, Failure> {
    against(root, root, value, "file")
}

const KNOWN: [&str; 10] = [
    "$ref",
    "$schema",
    "definitions",
    "title",
    "type",
    "const",
    "enum",
    "anyOf",
    "properties",
    "required",
];

fn against(
    root: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
) -> Result<Option<String>, Failure> {
    let Some(words) = schema.as_object() else { return Err("a schema is an object".into()) };
    for (word, wish) in words {
        let holds = match word.as_str() {
            "$ref" => {
                let pointer = wish.as_str().and_then(|path| path.strip_prefix('#'));
                let target = pointer.and_then(|pointer| root.pointer(pointer));
                let target = target.ok_or_else(|| format!("the schema has no {wish}"))?;
                match against(root, target, value, at)? {
                    Some(violation) => return Ok(Some(violation)),
                    None => true,
                }
            }
            "type" => is_of_type(value, wish),
            "const" => value == wish,
            "enum" => wish.as_array().is_some_and(|list| list.contains(value)),
            "anyOf" => {
                let mut any = false;
                for one in wish.as_array().into_iter().flatten() {
                    any |= against(root, one, value, at)?.is_none();
                }
                any
            }
            "required" => wish.as_array().into_iter().flatten().all(|name| {
                value.is_object() && name.as_str().is_some_and(|name| value.get(name).is_some())
            }),
            "properties" => {
                for (name, property) in wish.as_object().into_iter().flatten() {
                    let Some(value) = value.get(name) else { continue };
                    let at = format!("{at}.{name}");
                    if let Some(violation) = against(root, property, value, &at)? {
                        return Ok(Some(violation));
                    }
                }
                true
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    let at = format!("{at}[{number}]");
                    if let Some(violation) = against(root, wish, item, &at)? {
                        return Ok(Some(violation));
                    }
                }
                true
            }
            word if KNOWN.contains(&word) => true,
            word => return Err(format!("a schema with {word} is not understood").into()),
        };
        if !holds {
            return Ok(Some(format!("{at} is not as {word} says: {wish}")));
        }
    }
    Ok(None)
}

fn is_of_type(value: &Value, wish: &Value) -> bool {
    match wish.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::violation;
    use serde_json::json;

    #[test]
    fn a_value_that_is_not_as_the_schema_says_is_found() {
        let schema = json!({
            "$ref": "#/definitions/List",
            "definitions": {
                "List": {"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": {
                    "anyOf": [{"type": "number"}, {"const": "none"}]}}}},
            },
        });
        for (value, expected) in [
            (json!({"items": [1, "none"]}), None),
            (json!({"items": [1, "some"]}), Some("file.items[1] is not as anyOf says")),
            (json!({}), Some("file is not as required says")),
            (json!({"items": 3}), Some("file.items is not as type says")),
        ] {
            let found = violation(&schema, &value).unwrap();
            let agrees = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected),
                (None, None) => true,
                _ => false,
            };
            assert!(agrees, "{value}: {found:?}");
        }
        assert!(violation(&json!({"pattern": "a"}), &json!("a")).is_err());
    }
}
