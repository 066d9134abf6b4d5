//! The binary as a user meets it: exit codes, messages and files, from a
//! directory that has nothing to do with the sources.

#![allow(clippy::expect_used, reason = "a helper of tests may panic")]

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phigrad-bench"))
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("the binary starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn mistakes_in_the_arguments_end_with_code_2() {
    for (arguments, hint) in [
        (&["run", "--only", "Pendulum"][..], "BGDHyperOpt, Brachistochrone"),
        (&["check", "--only", "HMC", "--config", "9"], "HMC 1 to 3"),
        (&["run", "--config", "0"], "HMC 1 to 3"),
        (&["fly"], "Usage"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_json_file_that_cannot_be_written_stops_before_measuring() {
    for command in ["run", "scaling", "closed", "soi"] {
        let output = bench(&[command, "--json", "no-such-folder/rows.json"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(text(&output.stderr).contains("cannot write the JSON file no-such-folder"));
        assert!(output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn check_lists_each_configuration_and_counts() {
    let output = bench(&["check", "--only", "hookeanspring"]);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[..3].iter().all(|line| line.ends_with(" ok")), "{lines:?}");
    assert_eq!(lines[3], "3 passed, 0 failed");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn run_writes_a_table_and_a_json_row() {
    let path = std::env::temp_dir().join(format!("phigrad-bench-{}.json", std::process::id()));
    let file = path.to_str().expect("a path in UTF-8");
    let output =
        bench(&["run", "--quick", "--only", "HookeanSpring", "--config", "1", "--json", file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "a progress bar without a terminal");
    assert!(text(&output.stdout).contains("tape/kernel"), "{}", text(&output.stdout));
    let rows: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
    std::fs::remove_file(&path).expect("removable");
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!(rows[0]["benchmark"], "HookeanSpring");
    assert_eq!(rows[0]["inputs"], 20);
    for key in ["primal_ns", "hand_ns", "tape_ns", "kernel_ns", "kernel_value_ns", "compile_ns"] {
        assert!(rows[0][key].as_f64().is_some_and(|time| time > 0.0), "{key}");
    }
}

#[test]
fn soi_writes_a_table_rows_and_curves() {
    let path = |kind| std::env::temp_dir().join(format!("soi-{}.{kind}", std::process::id()));
    let (json, svg) = (path("json"), path("svg"));
    let [json_path, svg_path] = [&json, &svg].map(|path| path.to_str().expect("a path in UTF-8"));
    let output = bench(&["soi", "--quick", "--json", json_path, "--svg", svg_path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a file")).expect("JSON");
    let drawing = std::fs::read_to_string(&svg).expect("a file");
    for path in [&json, &svg] {
        std::fs::remove_file(path).expect("removable");
    }
    let rows = rows.as_array().expect("an array");
    assert_eq!(text(&output.stdout).lines().count(), 1 + rows.len());
    for row in rows {
        for key in ["limit", "kernel_ns", "compile_ns", "compile_ns_per_operation", "segments"] {
            assert!(row[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {row}");
        }
    }
    // Each limit comes twice; where there are many segments, less crosses if they are
    // cut where few values are live.
    let (mut aware, mut even) = (0, 0);
    for pair in rows.chunks(2) {
        assert_eq!(
            (&pair[0]["limit"], &pair[0]["program"]),
            (&pair[1]["limit"], &pair[1]["program"])
        );
        assert_eq!(
            (&pair[0]["reuse_aware"], &pair[1]["reuse_aware"]),
            (&true.into(), &false.into())
        );
        aware += pair[0]["crossing"].as_u64().expect("a count");
        even += pair[1]["crossing"].as_u64().expect("a count");
    }
    assert!(0 < aware && aware < even, "{aware} {even}");
    assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"));
    assert!(drawing.contains("1000 operations") && drawing.contains("polyline"), "{drawing}");
}

#[test]
fn an_svg_file_that_cannot_be_written_stops_before_measuring() {
    let output = bench(&["soi", "--svg", "no-such-folder/curves.svg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write the SVG file no-such-folder"));
    assert!(output.stdout.is_empty());
}
