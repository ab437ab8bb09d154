//! `[kafka]`: command topics.

use super::keys::{Section, Visitor};

/// Command topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaConfig {
    /// The brokers to begin with, as `host:port,host:port`.
    pub brokers: Option<String>,
    /// What the names of our topics begin with.
    pub topic_prefix: String,
    /// Whether a missing topic is created.
    pub create_topics: bool,
}

impl Default for KafkaConfig {
    fn default() -> Self {
        Self {
            brokers: None,
            topic_prefix: "wow.".to_owned(),
            create_topics: false,
        }
    }
}

impl Section for KafkaConfig {
    const NAME: &'static str = "kafka";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("brokers", &mut self.brokers);
        keys.any("topic-prefix", &mut self.topic_prefix);
        keys.any("create-topics", &mut self.create_topics);
    }
}
