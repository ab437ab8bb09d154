//! Whether two JSON texts say the same, with numbers compared digit by digit.
//!
//! A detour through a float would call 2^53 and 2^53 + 1 equal, which is what a check must not do.
//! The order of an object's members is no difference, for a map may be written in any.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// How deep states are compared member by member; below, their texts have to be equal.
const DEPTH_MAX: usize = 128;

/// The path of the first difference, as in `.items[2].price`; none where there is none.
///
/// # Errors
/// What serde says of a text that is no JSON.
pub(super) fn difference(a: &str, b: &str) -> Result<Option<String>, serde_json::Error> {
    let (a, b): (&RawValue, &RawValue) = (serde_json::from_str(a)?, serde_json::from_str(b)?);
    let mut path = String::new();
    Ok((!same(a, b, &mut path, DEPTH_MAX)?).then_some(path))
}

/// Whether two values are the same; where not, `path` is extended by where.
fn same(
    a: &RawValue,
    b: &RawValue,
    path: &mut String,
    depth: usize,
) -> Result<bool, serde_json::Error> {
    let (a, b) = (a.get(), b.get());
    // Equal texts are equal values; beyond the depth nothing else is looked at.
    if a == b || depth == 0 {
        return Ok(a == b);
    }
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let a: BTreeMap<String, &RawValue> = serde_json::from_str(a)?;
            let b: BTreeMap<String, &RawValue> = serde_json::from_str(b)?;
            for name in a.keys().chain(b.keys()) {
                let here = path.len();
                path.push('.');
                path.push_str(name);
                let (Some(a), Some(b)) = (a.get(name), b.get(name)) else {
                    return Ok(false);
                };
                if !same(a, b, path, depth - 1)? {
                    return Ok(false);
                }
                path.truncate(here);
            }
            Ok(true)
        }
        (Some(b'['), Some(b'[')) => {
            let a: Vec<&RawValue> = serde_json::from_str(a)?;
            let b: Vec<&RawValue> = serde_json::from_str(b)?;
            for index in 0..a.len().max(b.len()) {
                let here = path.len();
                path.push_str(&format!("[{index}]"));
                let (Some(a), Some(b)) = (a.get(index), b.get(index)) else {
                    return Ok(false);
                };
                if !same(a, b, path, depth - 1)? {
                    return Ok(false);
                }
                path.truncate(here);
            }
            Ok(true)
        }
        (Some(b'"'), Some(b'"')) => {
            Ok(serde_json::from_str::<String>(a)? == serde_json::from_str::<String>(b)?)
        }
        // Numbers, true, false and null have one text each as far as we write them.
        _ => Ok(false),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]
mod tests {
    use super::*;

    #[test]
    fn order_blanks_and_escapes_are_no_difference() {
        for (a, b) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                r#"{ "b" : [true, null], "a":1 }"#,
            ),
            (r#"{"a":"é"}"#, r#"{"a":"\u00e9"}"#),
            ("[]", "[ ]"),
        ] {
            assert_eq!(difference(a, b).unwrap(), None, "{a} {b}");
        }
    }

    #[test]
    fn numbers_are_compared_digit_by_digit() {
        for (a, b, path) in [
            (
                r#"{"n":9007199254740992}"#,
                r#"{"n":9007199254740993}"#,
                ".n",
            ),
            (
                r#"{"n":[18446744073709551615]}"#,
                r#"{"n":[18446744073709551616]}"#,
                ".n[0]",
            ),
            (r#"{"n":0.1}"#, r#"{"n":0.10000000000000001}"#, ".n"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1,"c":2}}"#, ".a.c"),
            ("[1,2]", "[1]", "[1]"),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, ".a"),
        ] {
            assert_eq!(difference(a, b).unwrap().as_deref(), Some(path), "{a} {b}");
        }
    }
}
