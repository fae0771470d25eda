/** What the views and commands of the Controller are made of. */
import type { ConfigFileControl, ConfigsControl, UpdatesControl } from "#core/control.ts";
import type { Health } from "#core/group.ts";
import type { Loader } from "#app/loader.ts";
import type { Host } from "#host/host.ts";
import type { Runtime } from "#runtime/runtime.ts";

export interface ControlEnv {
  readonly host: Host;
  readonly loader: Pick<Loader, "rewrite" | "refusePolicyStore" | "text" | "file">;
  /** Runs a change when the one before has ended. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  readonly health: Health;
  readonly configs: ConfigsControl;
  readonly configFile: ConfigFileControl;
  /** The one in force. */
  runtime(): Runtime;
  /** Downloads the dashboard of `external-ui`. */
  upgradeUi(): Promise<void>;
  readonly updates: UpdatesControl;
  /** Replaces the process by a fresh one with the same arguments. */
  restart(): void;
}
