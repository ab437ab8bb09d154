//! The body of one enum variant, with and without serde's tag around it.
//!
//! serde writes a variant as `{"Name":body}`, or `"Name"` when it has no fields. The log keeps
//! name and body apart, so that names can be declared and bodies read without the code.

mod body;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use self::body::Body;
use super::finite;

/// The body of an externally tagged enum value; `{}` for a variant without fields.
///
/// # Errors
/// What serde says of a value that JSON can't hold.
pub fn encode_variant<E: Serialize>(
    event: &E,
    tag: &str,
) -> Result<Box<RawValue>, serde_json::Error> {
    // Straight from the value in nearly all cases: what serde has just written needs no reading.
    if let Ok(body) = to_raw_value(&Body(event)) {
        if body.get().contains("null") {
            finite::check(event)?;
        }
        return Ok(body);
    }
    // A type that writes its tag by hand, or that can't be written: this says which.
    let text = finite::write(event)?;
    // `{"Tag":` before and `}` behind; tags are Rust identifiers and need no escapes.
    let body = text
        .strip_prefix("{\"")
        .and_then(|rest| rest.strip_prefix(tag))
        .and_then(|rest| rest.strip_prefix("\":"))
        .and_then(|rest| rest.strip_suffix('}'));
    RawValue::from_string(body.unwrap_or("{}").to_owned())
}

/// Reads the body of an externally tagged enum value.
///
/// # Errors
/// What serde says of a body that isn't this variant's.
pub fn decode_variant<E: DeserializeOwned>(
    tag: &str,
    has_fields: bool,
    body: &RawValue,
) -> Result<E, serde_json::Error> {
    if has_fields {
        let text = body.get();
        let mut tagged = String::with_capacity(tag.len() + text.len() + 5);
        tagged.push_str("{\"");
        tagged.push_str(tag);
        tagged.push_str("\":");
        tagged.push_str(text);
        tagged.push('}');
        serde_json::from_str(&tagged)
    } else {
        serde_json::from_str(&format!("\"{tag}\""))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Sample {
        Plain,
        Fields {
            amount: i64,
        },
        Wrapped(Vec<u64>),
        Pair(i8, String),
        Nothing {},
        Flat {
            #[serde(flatten)]
            inner: std::collections::BTreeMap<String, i64>,
        },
    }

    /// Writes its tag by hand.
    struct ByHand;

    impl Serialize for ByHand {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            std::collections::BTreeMap::from([("ByHand", 1)]).serialize(serializer)
        }
    }

    #[test]
    fn a_tag_written_by_hand_is_taken_off_too() {
        assert_eq!(encode_variant(&ByHand, "ByHand").unwrap().get(), "1");
    }

    #[test]
    fn what_json_cannot_hold_is_an_error() {
        #[derive(Serialize)]
        enum Odd {
            Keys(std::collections::BTreeMap<Vec<u8>, i64>),
            Share(f64),
        }
        let odd = Odd::Keys([(vec![1], 1)].into());
        assert!(encode_variant(&odd, "Keys").is_err());
        assert!(encode_variant(&Odd::Share(f64::NAN), "Share").is_err());
    }

    #[test]
    fn a_variant_is_read_back_from_its_body() {
        for (sample, tag, has_fields, body) in [
            (Sample::Plain, "Plain", false, "{}"),
            (
                Sample::Fields { amount: i64::MAX },
                "Fields",
                true,
                r#"{"amount":9223372036854775807}"#,
            ),
            (
                Sample::Wrapped(vec![u64::MAX]),
                "Wrapped",
                true,
                "[18446744073709551615]",
            ),
            (
                Sample::Pair(-1, "\"".to_owned()),
                "Pair",
                true,
                r#"[-1,"\""]"#,
            ),
            (Sample::Nothing {}, "Nothing", true, "{}"),
            (
                Sample::Flat {
                    inner: [("a".to_owned(), 1)].into(),
                },
                "Flat",
                true,
                r#"{"a":1}"#,
            ),
        ] {
            let encoded = encode_variant(&sample, tag).unwrap();
            assert_eq!(encoded.get(), body);
            assert_eq!(
                decode_variant::<Sample>(tag, has_fields, &encoded).unwrap(),
                sample
            );
        }
    }
}
