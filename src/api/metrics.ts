/**
 * /metrics in the text form of Prometheus. Labels are bounded: patterns of declared routes, their methods, statuses;
 * never a name, an address or a path that a client made up.
 */
import { performance } from "node:perf_hooks";
import { Counter, Gauge, Registry } from "prom-client";
import type { Control } from "#core/control.ts";
import { route, type Route } from "./route.ts";

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: "weir_api_requests_total",
    help: "Requests answered by the Controller",
    labelNames: ["method", "route", "status"],
    registers: [this.#registry],
  });

  constructor(control: Control) {
    const { connections } = control;
    this.#gauge("weir_connections", "Live sessions", () => connections.size);
    this.#gauge("process_resident_memory_bytes", "Resident set", () => control.memoryBytes());
    this.#gauge(
      "weir_event_loop_utilization",
      "Share of time in which the main thread was busy since start",
      () => {
        return performance.eventLoopUtilization().utilization;
      },
    );
    this.#total("weir_upload_bytes_total", "Bytes from clients", () => connections.totals().uploadBytes);
    this.#total("weir_download_bytes_total", "Bytes to clients", () => connections.totals().downloadBytes);
    this.#total("process_cpu_seconds_total", "CPU time", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    });
  }

  /** `declared` is null for a path without a route. */
  count(declared: Route | null, status: number): void {
    const { method = "other", path = "other" } = declared ?? {};
    this.#requests.inc({ method, route: path, status });
  }

  routes(): readonly Route[] {
    return [
      route({
        method: "GET",
        scope: "read",
        path: "/metrics",
        summary: "Counters for Prometheus",
        answer: { status: 200, type: "text/plain", description: "Text form, version 0.0.4" },
        handle: async ({ reply }) =>
          reply.type(this.#registry.contentType).send(await this.#registry.metrics()),
      }),
    ];
  }

  #gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect: () => gauge.set(read()),
    });
  }

  /** A counter that is kept elsewhere, and read. */
  #total(name: string, help: string, read: () => number): void {
    const collect = (): void => {
      counter.reset();
      counter.inc(read());
    };
    const counter: Counter = new Counter({ name, help, registers: [this.#registry], collect });
  }
}
