/** What a runtime is opened with. */
import type { Config, Mode } from "#config/config.ts";
import type { Health } from "#core/group.ts";
import type { Session } from "#core/session.ts";
import type { Host } from "#host/host.ts";
import type { InForce } from "./in-force.ts";
import type { Inbounds } from "./inbounds.ts";
import type { RuleData } from "./lists.ts";
import type { TunChange } from "./tun-change.ts";

export interface RuntimeEnv {
  readonly host: Host;
  readonly health: Health;
  /** Asked at every decision: a person may switch it while the runtime runs. */
  readonly mode: () => Mode;
  /** Takes what any listener accepts: the current runtime serves it, whichever opened the listener. */
  readonly accept: (session: Session) => void;
  /** For everything that may outlive the runtime that opens it. */
  readonly inForce: InForce;
  /** Changes the TUNs for this configuration; the last thing that may take time. */
  readonly changeTuns: (config: Config, lists: RuleData) => Promise<TunChange>;
  /** A rule provider has other contents. */
  readonly onRuleList: () => void;
  /** The last step of opening: the swap is in the turn of the event loop in which it settles; a throw closes everything again. */
  readonly adopt: (config: Config, inbounds: Inbounds) => Promise<void>;
  /** True at the start: a port that cannot be bound is logged and the others run. */
  readonly tolerant: boolean;
}
