//! Runs the cases of a suite, each on fresh stores, and tells of all that failed at once.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::Stores;

/// Runs every listed case, then fails the suite where any of them failed.
macro_rules! run_cases {
    ($suite:literal, $fresh:expr, [$($case:path),+ $(,)?]) => {{
        let mut report = $crate::conformance::cases::Report::new($suite);
        $(report.run(stringify!($case), &$fresh, $case).await;)+
        report.finish();
    }};
}
pub(super) use run_cases;

/// What came of the cases so far.
pub(super) struct Report {
    suite: &'static str,
    cases: usize,
    failures: Vec<String>,
}

impl Report {
    pub(super) fn new(suite: &'static str) -> Self {
        Self {
            suite,
            cases: 0,
            failures: Vec::new(),
        }
    }

    pub(super) async fn run<C>(
        &mut self,
        name: &str,
        fresh: &impl AsyncFn() -> Stores,
        case: impl FnOnce(Stores) -> C,
    ) where
        C: Future<Output = ()>,
    {
        let stores = fresh().await;
        // Boxed: the state of a case is large, and only one of them is alive at a time.
        let case = Box::pin(case(stores));
        self.cases += 1;
        if let Err(panic) = AssertUnwindSafe(case).catch_unwind().await {
            let name = name.replace(' ', "");
            self.failures
                .push(format!("{}::{name}\n    {}", self.suite, message(&*panic)));
        }
    }

    /// Ends the suite.
    ///
    /// # Panics
    /// Where a case failed, naming each that did.
    pub(super) fn finish(self) {
        let Self {
            suite,
            cases,
            failures,
        } = self;
        assert!(
            failures.is_empty(),
            "{} of {cases} cases of the {suite} suite failed:\n  {}",
            failures.len(),
            failures.join("\n  "),
        );
    }
}

pub(super) fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked without a message")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use super::*;

    async fn passes(_: Stores) {}

    async fn fails(_: Stores) {
        panic!("seen: {}", 7);
    }

    async fn suite(fresh: impl AsyncFn() -> Stores) {
        run_cases!("sample", fresh, [passes, fails, passes]);
    }

    #[tokio::test]
    async fn a_failing_suite_names_the_case_and_what_it_saw() {
        let ended = AssertUnwindSafe(suite(async || Stores::default()))
            .catch_unwind()
            .await;
        let panic = ended.unwrap_err();
        let text = message(&*panic);
        assert!(
            text.contains("1 of 3 cases of the sample suite failed"),
            "{text}"
        );
        assert!(text.contains("sample::fails\n    seen: 7"), "{text}");
    }
}
