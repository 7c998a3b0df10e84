//! Prints the peak allocation of each row on the large value as JSON, in multiples of the output.

use peak_alloc::PeakAlloc;
use tympan_bench::memory::Peaks;
use tympan_bench::{Result, data, peers};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() -> Result<()> {
    let workload = data::large();
    let mut peaks = Peaks::new();
    for row in peers::rows(&workload)? {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        row.run(1);
        let most = ALLOCATOR.peak_usage().saturating_sub(before);
        peaks.insert(row.name.to_string(), most as f64 / workload.expected.len() as f64);
    }
    println!("{}", serde_json::to_string(&peaks)?);
    Ok(())
}
