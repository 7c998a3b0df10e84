//! Names that an application registers.

use tympan_core::Prompt;
use tympan_lint::{Options, check};

#[test]
fn registered_names_are_known() {
    let text = "---\nmodel: {id: m, provider: acme, apiType: talk}\n---\nuser:\n{{ shout(1) | loud }}{% if 1 is big %}{% endif %}";
    let prompt = Prompt::from_prompty(text).expect("it loads");
    let codes = |options: &Options| check(&prompt, options).iter().map(|finding| finding.rule.code).collect::<Vec<_>>();
    assert_eq!(codes(&Options::default()), ["TY107", "TY108", "TY104", "TY102", "TY103"]);
    let mut options = Options::default();
    options.filters.push("loud".into());
    options.tests.push("big".into());
    options.functions.push("shout".into());
    options.providers.push("acme".into());
    assert!(codes(&options).is_empty(), "{:?}", codes(&options));
}
