/**
 * /metrics in the text forms of Prometheus and OpenMetrics. Labels are bounded: patterns of declared routes, their
 * methods and statuses, names from the configuration and from providers; never what a client made up.
 */
import { Counter, Histogram, Registry } from "prom-client";
import type { Control } from "#core/control.ts";
import type { FleetAdmin } from "#core/fleet.ts";
import { route, type Route } from "#api/route.ts";
import { fleetMetrics } from "./fleet.ts";
import { nodeMetrics } from "./nodes.ts";
import { policyMetrics } from "./policies.ts";
import { ProcessMetrics } from "./process.ts";
import type { MetricRegistry } from "./read.ts";
import { providerMetrics } from "./providers.ts";
import { trafficMetrics } from "./traffic.ts";

const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

export class Metrics implements Disposable {
  readonly #registry: MetricRegistry = new Registry();
  readonly #process = new ProcessMetrics(this.#registry);
  readonly #requests = new Counter({
    name: "weir_api_requests_total",
    help: "Requests answered by the Controller",
    labelNames: ["method", "route", "status"],
    registers: [this.#registry],
  });
  readonly #durations = new Histogram({
    name: "weir_api_request_duration_seconds",
    help: "From a request's head to the end of its answer",
    labelNames: ["route"],
    buckets: SECONDS,
    registers: [this.#registry],
  });
  /** Scrapes are made one after the other: the form is a property of the registry. */
  #turn: Promise<unknown> = Promise.resolve();

  /** `fleet` is asked with each scrape. */
  constructor(control: Control, fleet: () => FleetAdmin | null = () => null) {
    trafficMetrics(this.#registry, control);
    nodeMetrics(this.#registry, control);
    providerMetrics(this.#registry, control);
    policyMetrics(this.#registry, control);
    fleetMetrics(this.#registry, fleet);
  }

  /** `declared` is null for a path without a route. Streams are answers that end with their client: not timed. */
  count(declared: Route | null, status: number, durationMs: number): void {
    const { method = "other", path = "other" } = declared ?? {};
    this.#requests.inc({ method, route: path, status });
    if (declared !== null && declared.stream === undefined)
      this.#durations.observe({ route: path }, durationMs / 1000);
  }

  routes(): readonly Route[] {
    return [
      route({
        method: "GET",
        scope: "read",
        path: "/metrics",
        summary: "Counters for Prometheus, as OpenMetrics where that is asked for",
        answer: { status: 200, type: "text/plain", description: "Text form, version 0.0.4" },
        handle: async ({ request, reply }) => {
          const isOpen = request.headers.accept?.includes("application/openmetrics-text") ?? false;
          const { type, text } = await this.#scrape(isOpen);
          return reply.type(type).send(text);
        },
      }),
    ];
  }

  #scrape(isOpen: boolean): Promise<{ type: string; text: string }> {
    const scrape = this.#turn.then(async () => {
      const type = isOpen ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
      this.#registry.setContentType(type);
      this.#process.scraped();
      return { type, text: await this.#registry.metrics() };
    });
    this.#turn = scrape.catch(() => {});
    return scrape;
  }

  [Symbol.dispose](): void {
    this.#process[Symbol.dispose]();
  }
}
