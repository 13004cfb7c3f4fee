//! The JSON of every command fits its schema in `docs/json`.

use std::collections::BTreeSet;
use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use super::document::root;
use super::world::{Fixtures, World};

/// Commands by the names of their schemas.
const ANSWERS: [(&str, &str); 22] = [
    ("show", "about-memory heap.json.gz --json"),
    ("show", "about-memory before.json.gz heap.json.gz --json --min 1%"),
    ("diff", "about-memory diff before.json.gz after.json.gz --json"),
    ("diff", "about-memory diff before.json.gz heap.json.gz --json"),
    ("ps", "about-memory ps --json"),
    ("ps", "about-memory ps --json --quick # indexer"),
    ("run", "about-memory run --json -- ./my-program 0.1"),
    ("log", "about-memory log 4711 --for 3 --json"),
    ("recording", "about-memory recording leak.rec --json"),
    ("inspect", "about-memory inspect 4711 --json"),
    ("tree", "about-memory tree held.dmd.json --json"),
    ("heap-tree", "about-memory heap tree heap.dmd.json.gz --json --by reporter,type"),
    ("heap-tree", "about-memory heap tree leak.rec --json"),
    ("heap-diff", "about-memory heap diff before.dmd.json.gz after.dmd.json.gz --json"),
    ("heap-census", "about-memory heap census heap.dmd.json.gz --json"),
    ("heap-census", "about-memory heap census heap.dmd.json.gz --json --by type,stack:2"),
    ("heap-coverage", "about-memory heap coverage heap.dmd.json.gz --json"),
    ("heap-records", "about-memory heap records heap.dmd.json.gz --json"),
    ("heap-records", "about-memory heap records heap.dmd.json.gz --json --by type"),
    ("heap-dominators", "about-memory heap dominators held.dmd.json --json"),
    ("heap-dominators", "about-memory heap dominators held.dmd.json --json --by type"),
    ("heap-why-alive", "about-memory heap why-alive held.dmd.json --site held --json"),
];

/// The schemas that other tests check: the answer takes a build of a program.
const ELSEWHERE: [&str; 1] = ["annotate"];

/// Returns the schema of a command.
fn schema(name: &str) -> Validator {
    let file = root().join(format!("docs/json/{name}.schema.json"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let id = schema["$id"].as_str().expect("a schema has a name");
    assert!(id.ends_with(&format!("/docs/json/{name}.schema.json")), "{id}");
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the JSON values of an answer: one, or one in each line.
fn values(name: &str, text: &str) -> Vec<Value> {
    let parse = |text: &str| {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error} in {text}"))
    };
    if name == "log" { text.lines().map(parse).collect() } else { vec![parse(text)] }
}

#[test]
fn every_json_answer_fits_its_schema() {
    let fixtures = Fixtures::make();
    let mut world = World::new(&fixtures, "schemas");
    let mut checked = BTreeSet::new();
    for (name, command) in ANSWERS {
        let output = world.answer(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{command}: {said}");
        let schema = schema(name);
        let answers = values(name, &String::from_utf8_lossy(&output.stdout));
        for answer in &answers {
            let errors = schema.iter_errors(answer);
            let errors: Vec<_> =
                errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert_eq!(errors, [""; 0], "{command}");
        }
        // A schema that takes anything would take this too.
        let wrong = answers.first().map(|answer| match answer {
            Value::Array(_) => serde_json::json!([{ "unknown": null }]),
            _ => serde_json::json!({ "unknown": null }),
        });
        if let Some(wrong) = wrong {
            assert!(!schema.is_valid(&wrong), "{name} takes anything");
            checked.insert(name.to_owned());
        }
    }
    let files = fs::read_dir(root().join("docs/json")).expect("the folder is there");
    let names = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    let named: BTreeSet<String> =
        names.filter_map(|name| Some(name.strip_suffix(".schema.json")?.to_owned())).collect();
    checked.extend(ELSEWHERE.map(str::to_owned));
    assert_eq!(checked, named, "a schema without an answer, or the other way round");
}

#[test]
fn every_command_with_json_has_a_schema() {
    use clap::CommandFactory;
    let mut missing = Vec::new();
    let command = about_memory::Cli::command();
    let below = |group: &clap::Command| group.get_subcommands().cloned().collect::<Vec<_>>();
    for sub in below(&command).iter().filter(|sub| !sub.is_hide_set()) {
        let inner = below(sub);
        let inner =
            inner.iter().map(|inner| (format!("{}-{}", sub.get_name(), inner.get_name()), inner));
        for (name, sub) in [(sub.get_name().to_owned(), sub)].into_iter().chain(inner) {
            let has_json = sub.get_arguments().any(|argument| argument.get_long() == Some("json"));
            let is_group = sub.has_subcommands();
            let is_checked =
                ANSWERS.iter().any(|(checked, _)| *checked == name) || ELSEWHERE.contains(&&*name);
            if has_json && !is_group && !is_checked {
                missing.push(name);
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}
