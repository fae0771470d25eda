/** Metrics whose values are kept elsewhere, and read when a scrape asks. */
import { Counter, Gauge, type Registry, type RegistryContentType } from "prom-client";

/** Writes both forms, one scrape at a time. */
export type MetricRegistry = Registry<RegistryContentType>;

/** A value for each combination of labels. */
export type Sample<L extends string> = readonly [labels: Readonly<Record<L, string>>, value: number];

interface Named<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
  /** All samples that there are now; combinations that are gone are no longer shown. */
  read(): Iterable<Sample<L>>;
}

export function gauge(registry: MetricRegistry, name: string, help: string, read: () => number): void {
  const made: Gauge = new Gauge({ name, help, registers: [registry], collect: () => made.set(read()) });
}

/** A counter that is kept elsewhere, and read. */
export function total(registry: MetricRegistry, name: string, help: string, read: () => number): void {
  const collect = (): void => {
    made.reset();
    made.inc(read());
  };
  const made: Counter = new Counter({ name, help, registers: [registry], collect });
}

export function gauges<L extends string>(
  registry: MetricRegistry,
  { name, help, labels, read }: Named<L>,
): void {
  const collect = (): void => {
    made.reset();
    for (const [values, value] of read()) made.set(values, value);
  };
  const made: Gauge<L> = new Gauge({ name, help, labelNames: labels, registers: [registry], collect });
}

export function totals<L extends string>(
  registry: MetricRegistry,
  { name, help, labels, read }: Named<L>,
): void {
  const collect = (): void => {
    made.reset();
    for (const [values, value] of read()) made.inc(values, value);
  };
  const made: Counter<L> = new Counter({ name, help, labelNames: labels, registers: [registry], collect });
}
