//! Durations, as `"5s"`, `"250ms"`, `"1m 30s"`.

use std::time::Duration;

use super::setting::text_setting;

text_setting!(
    ordered Duration,
    "a duration with its unit, such as \"250ms\", \"5s\" or \"2m\"",
    |text| humantime::parse_duration(text).ok(),
    |value| humantime::format_duration(*value).to_string()
);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::setting::{Raw, Setting};

    #[test]
    fn a_duration_has_a_unit_and_is_printed_as_it_is_read() {
        for (text, millis) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            let duration = Duration::parse(Raw::Text(text));
            assert_eq!(duration, Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(Duration::from_millis(millis).print(), format!("\"{text}\""));
        }
        for bad in ["5", "five seconds", "-5s", "", "5 parsecs"] {
            assert_eq!(Duration::parse(Raw::Text(bad)), None, "{bad}");
        }
        assert_eq!(
            Duration::parse(Raw::Integer(5)),
            None,
            "a number has no unit"
        );
    }
}
