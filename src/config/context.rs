//! `[context]`: the service's bounded context.

use super::keys::{Section, Visitor};
use super::setting::text_setting;

/// The name of a bounded context: part of request ids, of topics and of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextName(String);

impl ContextName {
    const CHARS_MAX: usize = 64;

    fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= Self::CHARS_MAX;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (fits && text.chars().all(allowed)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_setting!(
    ContextName,
    "a name of 1 to 64 letters, digits, '-', '_' and '.'",
    |text| Self::parse(text),
    |value| value.as_str()
);

/// The service's bounded context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextConfig {
    /// Its name.
    pub name: ContextName,
    /// The first segment of paths to its aggregates from another context's node.
    pub alias: Option<ContextName>,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            name: ContextName("example".to_owned()),
            alias: None,
        }
    }
}

impl Section for ContextConfig {
    const NAME: &'static str = "context";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("name", &mut self.name);
        keys.any("alias", &mut self.alias);
    }
}
