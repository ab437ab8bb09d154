//! What can stand behind a key: how a value is read, bounded and printed.

use std::net::SocketAddr;
use std::path::PathBuf;

use figment::value::Value;
use wow_kernel::id::NodeName;

/// A value as a source gives it. Environment and command line only have texts, so every type
/// can be read from one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Integer(i128),
    /// True or false.
    Bool(bool),
    /// A table, a list or a fraction: nothing here is one.
    Other,
}

impl<'a> Raw<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::String(_, text) => Self::Text(text),
            Value::Bool(_, truth) => Self::Bool(*truth),
            Value::Num(_, number) => number
                .to_i128()
                .or_else(|| {
                    number
                        .to_u128()
                        .and_then(|number| i128::try_from(number).ok())
                })
                .map_or(Self::Other, Self::Integer),
            _ => Self::Other,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The type of a key's value.
pub(super) trait Setting: Clone + Sized {
    /// What its range is of: the type itself, or what it may hold.
    type Bounded: Setting + PartialOrd;

    /// What to write, for a fault's message.
    fn expected() -> String;

    /// Reads a value; none where it isn't one.
    fn parse(raw: Raw<'_>) -> Option<Self>;

    /// What its range is to be held against; none where no range applies.
    fn bounded(&self) -> Option<&Self::Bounded>;

    /// The value as TOML, secrets redacted.
    fn print(&self) -> String;

    /// Whether a value that can't be read may hold a secret, so that no message shows it.
    fn is_secret() -> bool {
        false
    }
}

/// What stands in for a bound where a type has no order, and so no range.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum Unordered {}

impl Setting for Unordered {
    type Bounded = Self;

    fn expected() -> String {
        String::new()
    }

    fn parse(_: Raw<'_>) -> Option<Self> {
        None
    }

    fn bounded(&self) -> Option<&Self> {
        None
    }

    fn print(&self) -> String {
        match *self {}
    }
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

impl Setting for bool {
    type Bounded = Unordered;

    fn expected() -> String {
        "true or false".to_owned()
    }

    fn parse(raw: Raw<'_>) -> Option<Self> {
        match raw {
            Raw::Bool(truth) => Some(truth),
            Raw::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn bounded(&self) -> Option<&Unordered> {
        None
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_number {
    ($($number:ty),*) => {$(
        impl Setting for $number {
            type Bounded = Self;

            fn expected() -> String {
                "a whole number".to_owned()
            }

            fn parse(raw: Raw<'_>) -> Option<Self> {
                match raw {
                    Raw::Integer(number) => number.try_into().ok(),
                    Raw::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }

            fn bounded(&self) -> Option<&Self> {
                Some(self)
            }

            fn print(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

whole_number!(u32, usize);

/// Implements [`Setting`] for a type that is read from a text and printed as one; `ordered`
/// ones can have a range.
macro_rules! text_setting {
    (ordered $type:ty, $expected:expr, |$text:ident| $parse:expr, |$value:ident| $print:expr) => {
        text_setting!(@ $type, Self, Some, $expected, |$text| $parse, |$value| $print);
    };
    (@ $type:ty, $bounded:ty, $bound:expr, $expected:expr,
     |$text:ident| $parse:expr, |$value:ident| $print:expr) => {
        impl $crate::config::setting::Setting for $type {
            type Bounded = $bounded;

            fn expected() -> String {
                $expected.to_string()
            }

            fn parse(raw: $crate::config::setting::Raw<'_>) -> Option<Self> {
                match raw {
                    $crate::config::setting::Raw::Text($text) => $parse,
                    _ => None,
                }
            }

            fn bounded(&self) -> Option<&Self::Bounded> {
                $bound(self)
            }

            fn print(&self) -> String {
                let $value = self;
                $crate::config::setting::quoted(&$print)
            }
        }
    };
    ($type:ty, $expected:expr, |$text:ident| $parse:expr, |$value:ident| $print:expr) => {
        text_setting!(
            @ $type, $crate::config::setting::Unordered, |_| None,
            $expected, |$text| $parse, |$value| $print
        );
    };
}
pub(super) use text_setting;

text_setting!(
    String,
    "a text that is not empty",
    |text| (!text.trim().is_empty()).then(|| text.to_owned()),
    |value| value
);
text_setting!(
    PathBuf,
    "the path of a file",
    |text| (!text.trim().is_empty()).then(|| Self::from(text)),
    |value| value.to_string_lossy()
);
text_setting!(
    SocketAddr,
    "an IP address with a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"",
    |text| text.parse().ok(),
    |value| value.to_string()
);
text_setting!(
    NodeName,
    "a name of 1 to 128 characters without '/', control characters or outer blanks",
    |text| Self::parse(text).ok(),
    |value| value.as_str()
);

/// The empty text is none, so that a later source can take back what an earlier one set.
impl<S: Setting> Setting for Option<S> {
    type Bounded = S::Bounded;

    fn expected() -> String {
        format!("{}, or \"\" for none", S::expected())
    }

    fn parse(raw: Raw<'_>) -> Option<Self> {
        if raw.text() == Some("") {
            Some(None)
        } else {
            S::parse(raw).map(Some)
        }
    }

    fn bounded(&self) -> Option<&Self::Bounded> {
        self.as_ref().and_then(S::bounded)
    }

    fn print(&self) -> String {
        self.as_ref().map_or_else(|| quoted(""), S::print)
    }

    fn is_secret() -> bool {
        S::is_secret()
    }
}

/// A value that the node works out by itself where nothing is set: from the machine, or from
/// other keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auto<S> {
    /// The node works it out.
    #[default]
    Auto,
    /// It is set.
    Set(S),
}

impl<S: Clone> Auto<S> {
    /// The value, or what `otherwise` works out.
    pub fn unwrap_or_else(&self, otherwise: impl FnOnce() -> S) -> S {
        match self {
            Self::Auto => otherwise(),
            Self::Set(value) => value.clone(),
        }
    }
}

impl<S: Setting> Setting for Auto<S> {
    type Bounded = S::Bounded;

    fn expected() -> String {
        format!("{}, or \"auto\"", S::expected())
    }

    fn parse(raw: Raw<'_>) -> Option<Self> {
        if raw.text() == Some("auto") {
            Some(Self::Auto)
        } else {
            S::parse(raw).map(Self::Set)
        }
    }

    fn bounded(&self) -> Option<&Self::Bounded> {
        match self {
            Self::Auto => None,
            Self::Set(value) => value.bounded(),
        }
    }

    fn print(&self) -> String {
        match self {
            Self::Auto => quoted("auto"),
            Self::Set(value) => value.print(),
        }
    }
}

/// Declares a choice between words.
macro_rules! choice {
    (
        $(#[$doc:meta])*
        pub enum $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )+
        }

        impl $name {
            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl $crate::config::setting::Setting for $name {
            type Bounded = $crate::config::setting::Unordered;

            fn expected() -> String {
                [$( concat!("\"", $word, "\"") ),+].join(" or ")
            }

            fn parse(raw: $crate::config::setting::Raw<'_>) -> Option<Self> {
                match raw {
                    $( $crate::config::setting::Raw::Text($word) => Some(Self::$variant), )+
                    _ => None,
                }
            }

            fn bounded(&self) -> Option<&Self::Bounded> {
                None
            }

            fn print(&self) -> String {
                $crate::config::setting::quoted(self.as_str())
            }
        }
    };
}
pub(super) use choice;
