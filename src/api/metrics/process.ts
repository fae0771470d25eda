/** The process itself: CPU, memory, collections of the heap, and how late the event loop is. */
import { monitorEventLoopDelay, performance, PerformanceObserver } from "node:perf_hooks";
import { Histogram } from "prom-client";
import { gauge, gauges, type MetricRegistry, total, type Sample } from "./read.ts";

/** Measuring wakes the process fifty times a second, so it ends this long after the last scrape. */
const UNASKED_MS = 300_000;
const RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;
const PERCENTILES = [50, 90, 99] as const;
/** V8's numbers of kinds of collection, as `node:perf_hooks` reports them. */
const KINDS: Readonly<Record<number, string>> = { 1: "minor", 4: "major", 8: "incremental", 16: "weakcb" };
const SECONDS = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5];

export class ProcessMetrics implements Disposable {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #collections: Histogram<"kind">;
  readonly #observer: PerformanceObserver;
  #ends: NodeJS.Timeout | null = null;

  constructor(registry: MetricRegistry) {
    gauge(registry, "process_resident_memory_bytes", "Resident set", () => process.memoryUsage.rss());
    gauge(
      registry,
      "process_start_time_seconds",
      "When the process began",
      () => performance.timeOrigin / 1000,
    );
    total(registry, "process_cpu_seconds_total", "CPU time", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    });
    gauges(registry, {
      name: "weir_memory_bytes",
      help: "Memory of the main thread by what it is for",
      labels: ["kind"],
      read: () => {
        const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
        const kinds = { heap_used: heapUsed, heap_total: heapTotal, external, array_buffers: arrayBuffers };
        return Object.entries(kinds).map(([kind, bytes]) => [{ kind }, bytes]);
      },
    });
    gauge(
      registry,
      "weir_event_loop_utilization",
      "Share of time in which the main thread was busy since start",
      () => performance.eventLoopUtilization().utilization,
    );
    gauges(registry, {
      name: "weir_event_loop_delay_seconds",
      help: "How late timers of the main thread were since the last scrape; measured while there are scrapes",
      labels: ["percentile"],
      read: () => this.#readDelay(),
    });
    this.#collections = new Histogram({
      name: "weir_gc_duration_seconds",
      help: "Collections of the main thread's heap; measured while there are scrapes",
      labelNames: ["kind"],
      buckets: SECONDS,
      registers: [registry],
    });
    this.#observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        this.#collections.observe({ kind: kindOf(entry) }, entry.duration / 1000);
    });
  }

  /** Measures from now on, until some minutes after the last scrape. */
  scraped(): void {
    if (this.#ends === null) {
      this.#delay.enable();
      this.#observer.observe({ entryTypes: ["gc"] });
    } else clearTimeout(this.#ends);
    this.#ends = setTimeout(() => this[Symbol.dispose](), UNASKED_MS).unref();
  }

  *#readDelay(): Generator<Sample<"percentile">> {
    if (this.#delay.count === 0) return;
    const late = (nanoseconds: number): number =>
      Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000);
    for (const percentile of PERCENTILES)
      yield [{ percentile: String(percentile) }, late(this.#delay.percentile(percentile))];
    yield [{ percentile: "100" }, late(this.#delay.max)];
    this.#delay.reset();
  }

  [Symbol.dispose](): void {
    if (this.#ends !== null) clearTimeout(this.#ends);
    this.#ends = null;
    this.#delay.disable();
    this.#observer.disconnect();
  }
}

/** The entry's `detail` has the number of the kind. */
function kindOf(entry: object): string {
  const detail = "detail" in entry ? entry.detail : null;
  const kind = typeof detail === "object" && detail !== null && "kind" in detail ? detail.kind : null;
  return (typeof kind === "number" ? KINDS[kind] : undefined) ?? "other";
}
