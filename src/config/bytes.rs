//! Sizes in bytes, as `"64KiB"`, `"1MiB"`, `"512MiB"`.

use std::fmt;

use super::setting::text_setting;

const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// So many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many KiB.
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// So many MiB.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// So many GiB.
    pub const fn gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// The bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The bytes as what lengths are compared with; all of memory where they are more.
    pub fn as_len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|character: char| !character.is_ascii_digit())?;
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
        number.checked_mul(*factor).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = UNITS
            .iter()
            .find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor))
            .unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

text_setting!(
    ordered ByteSize,
    "a size with its unit, such as \"64KiB\", \"1MiB\" or \"10MB\"",
    |text| Self::parse(text),
    |value| value.to_string()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_and_is_printed_as_it_is_read() {
        for (text, bytes) in [
            ("1B", 1),
            ("1500B", 1_500),
            ("64KiB", 65_536),
            ("1MiB", 1_048_576),
            ("3GiB", 3_221_225_472),
            ("10MB", 10_000_000),
            ("0B", 0),
        ] {
            assert_eq!(ByteSize::parse(text), Some(ByteSize(bytes)), "{text}");
            assert_eq!(
                ByteSize::parse(&ByteSize(bytes).to_string()),
                Some(ByteSize(bytes))
            );
        }
        assert_eq!(ByteSize::parse("1 MiB"), Some(ByteSize::mib(1)));
        assert_eq!(ByteSize::mib(512).to_string(), "512MiB");
        for bad in [
            "",
            "1",
            "MiB",
            "-1MiB",
            "1mib",
            "1.5MiB",
            "1TiBs",
            "99999999999GiB",
        ] {
            assert_eq!(ByteSize::parse(bad), None, "{bad}");
        }
    }
}
