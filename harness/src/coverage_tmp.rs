//! Temporary.
#[cfg(test)]
mod tests {
    use crate::programs::*;
    use phigrad::ssa::*;
    use phigrad::trace::*;
    use std::panic::Location;
    fn coverage<P: Program>(config: usize, spread: f64, x0: Vec<f64>) {
        let p = P::new(P::CONFIGS[config]);
        let mut random = phigrad::check::Random::new(1);
        let mut tracer = Tracer::default();
        let mut lifted = Lifted::new(x0.len(), 0);
        let t = std::time::Instant::now();
        let mut draw =
            || x0.iter().map(|x| x + random.uniform(-spread, spread)).collect::<Vec<f64>>();
        for k in 0..50 {
            let x = draw();
            let t0 = std::time::Instant::now();
            let trace = tracer
                .run(
                    |x, _| p.objective(x),
                    Inputs { active: &x, inactive: &[] },
                    1 << 24,
                    Location::caller(),
                )
                .unwrap();
            let n = trace.events.len();
            if k == 0 {
                let mut one = std::collections::HashMap::new();
                for e in trace.events {
                    if e.role() == Role::Join {
                        one.insert(e.payload(), e.has_one_way());
                    }
                }
                let mut open: Vec<(u64, String)> = vec![];
                let mut stats = std::collections::BTreeMap::new();
                for e in trace.events {
                    match e.role() {
                        Role::Enter => {
                            *stats
                                .entry(format!(
                                    "enter {} one-way {:?}",
                                    e.site(),
                                    one.get(&e.payload())
                                ))
                                .or_insert(0) += 1;
                            open.push((e.payload(), e.site().to_string()));
                        }
                        Role::Join => {
                            let i = open.iter().position(|o| o.0 == e.payload()).unwrap();
                            open.truncate(i);
                        }
                        Role::Guard => {
                            *stats
                                .entry(format!(
                                    "guard {} in {}",
                                    e.site(),
                                    open.last().map_or("none", |o| &o.1)
                                ))
                                .or_insert(0) += 1;
                        }
                        Role::Phi => {
                            *stats.entry(format!("phi {}", e.site())).or_insert(0) += 1;
                        }
                        Role::Iterate => {
                            *stats
                                .entry(format!("iterate {} {}", e.site(), e.has_one_way()))
                                .or_insert(0) += 1;
                        }
                        _ => {}
                    }
                }
                let mut run = std::collections::BTreeMap::new();
                let mut key: Option<(String, Vec<u64>, usize)> = None;
                for e in trace.events {
                    match e.role() {
                        Role::Join | Role::Iterate => {
                            if let Some(k) = key.take() {
                                *run.entry(k).or_insert(0) += 1;
                            }
                            key = Some((e.site().to_string(), vec![], 0));
                        }
                        Role::State => {
                            if let Some(k) = &mut key {
                                k.1.push(e.payload());
                            }
                        }
                        Role::Phi => {
                            if let Some(k) = &mut key {
                                k.2 += 1;
                            }
                        }
                        _ => {
                            if let Some(k) = key.take() {
                                *run.entry(k).or_insert(0) += 1;
                            }
                        }
                    }
                }
                for (k, v) in run {
                    println!("  key {k:?}: {v}");
                }
                for (k, v) in stats {
                    println!("  {k}: {v}");
                }
            }
            let r = lifted.merge(&trace, Paths { paths: 64, nodes: 1 << 24 });
            if k < 3 || k == 49 {
                println!(
                    "{} {k}: events {n} {:?} steps {} paths {} {:?}",
                    P::NAME,
                    r.map(|m| format!("{m:?}").len()),
                    lifted.steps(),
                    lifted.paths(),
                    t0.elapsed()
                );
            }
        }
        println!(
            "unmerged {:?} {:?}",
            lifted.unmerged().iter().map(|u| u.to_string()).collect::<Vec<_>>(),
            t.elapsed()
        );
        let graph = lifted.graph();
        let mut known = 0;
        for _ in 0..200 {
            let x = draw();
            match interpret(graph, &x) {
                Outcome::Values(v) => {
                    known += 1;
                    assert_eq!(v[0].to_bits(), p.objective(&x[..]).to_bits());
                }
                _ => {}
            }
        }
        println!(
            "{} {config}: known {known} of 200, nodes {} regions {}",
            P::NAME,
            graph.nodes.len(),
            graph.regions.len()
        );
    }
    #[test]
    fn cover() {
        let v: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../data/vectors.json")).unwrap();
        let x = |name: &str, c: usize| -> Vec<f64> {
            v.iter()
                .find(|r| r["benchmark"] == name && r["config"].as_u64() == Some(c as u64 + 1))
                .unwrap()["input"]
                .as_array()
                .unwrap()
                .iter()
                .map(|x| x.as_f64().unwrap())
                .collect()
        };
        coverage::<hmc::Hmc>(0, 3000.0, x("HMC", 0));
        coverage::<qwop::Qwop>(0, 0.3, x("QWOP", 0));
    }
}
