/** What answers the requests of a Controller. It is loaded with the first of them: docs/adr/0072. */
import type { Control } from "#core/control.ts";
import type { Log } from "#core/log.ts";
import type { Answers } from "./answering.ts";
import { buildApp } from "./app.ts";
import type { AppOptions, Transport } from "./app-env.ts";
import { Metrics } from "./metrics/index.ts";
import { Subscribers } from "./subscriber.ts";
import type { Upgrades } from "./upgrade.ts";

/** Shared by the listeners of one Controller. */
export class Application implements Disposable {
  readonly #options: AppOptions;
  readonly #control: Control;
  readonly #log: Log;
  readonly #metrics: Metrics;

  constructor(options: AppOptions, control: Control, log: Log) {
    this.#options = options;
    this.#control = control;
    this.#log = log;
    this.#metrics = new Metrics(control, options.fleet);
  }

  async openFor(transport: Transport, upgrades: Upgrades): Promise<Answers> {
    const subscribers = new Subscribers();
    const app = await buildApp({
      options: this.#options,
      transport,
      control: this.#control,
      log: this.#log,
      upgrades,
      subscribers,
      metrics: this.#metrics,
    });
    return {
      serve: (request, response) => app.routing(request, response),
      [Symbol.dispose]: () => subscribers[Symbol.dispose](),
    };
  }

  [Symbol.dispose](): void {
    this.#metrics[Symbol.dispose]();
  }
}
