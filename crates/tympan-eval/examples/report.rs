//! Converts a saved run to another format, optionally compared with an older run:
//!
//! ```sh
//! cargo run --package tympan-eval --example report -- html run.jsonl [baseline.jsonl] > report.html
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};

use tympan_eval::baseline::Baseline;
use tympan_eval::report::{ReportOptions, Summary, writer};
use tympan_eval::saved_run::SavedRun;
use tympan_eval::statistics::Confidence;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [format, run, baseline @ ..] = &arguments[..] else {
        return Err("expected a format and the path of a saved run".into());
    };
    let baseline =
        baseline.first().map(|path| Ok::<_, Box<dyn Error>>(Baseline::read(path, open(path)?)?)).transpose()?;
    let mut comparer = baseline.map(Baseline::compare);
    let mut report = writer(format.parse()?, &ReportOptions::default(), BufWriter::new(io::stdout()))?;
    let mut summary = Summary::default();
    for result in SavedRun::new(run, open(run)?) {
        let result = result?;
        summary.add(&result);
        summary.seconds += result.seconds;
        comparer.iter_mut().for_each(|comparer| comparer.add(&result));
        report.case(&result)?;
    }
    summary.comparison = comparer.map(|comparer| comparer.finish(Confidence::P95));
    report.finish(&summary)?;
    Ok(())
}

fn open(path: &str) -> Result<BufReader<File>, Box<dyn Error>> {
    Ok(BufReader::new(File::open(path).map_err(|error| format!("{path}: {error}"))?))
}
