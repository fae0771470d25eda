/** Holds the portal in force and prepares the next one beside it. */
import type { GovernanceSettings } from "./settings.ts";
import { Portal, type PortalEnv } from "./portal.ts";
import type { Prepared } from "./governance.ts";

export class PortalSlot implements Disposable {
  readonly #env: PortalEnv;
  #portal: Portal | null = null;

  constructor(env: PortalEnv) {
    this.#env = env;
  }

  /** Names these policies; null: there is no portal now. */
  link(ids: readonly string[]): string | null {
    return this.#portal?.link(ids) ?? null;
  }

  /** Where it listens and by which descriptor; null: there is no portal now. */
  get listening(): { readonly key: string; readonly fd: number } | null {
    const portal = this.#portal;
    return portal === null ? null : { key: portal.key, fd: portal.fd };
  }

  /** The same address keeps its server and its key. Rejects where another one cannot be bound. */
  async prepare(settings: GovernanceSettings | null): Promise<Prepared> {
    const listen = settings?.enabled === true ? settings.portal.listen : null;
    const kept =
      listen !== null && this.#portal?.key === `${listen.host}:${listen.port}` ? this.#portal : null;
    const next = listen === null ? null : (kept ?? (await Portal.open(listen, this.#env)));
    return {
      abandon: () => {
        if (next !== kept) next?.[Symbol.dispose]();
      },
      activate: () => {
        if (this.#portal !== next) {
          this.#portal?.[Symbol.dispose]();
          if (next !== null) this.#env.log.info(`portal: ${next.boundUrl}`);
        }
        this.#portal = next;
        if (next !== null) next.url = settings?.portal.url ?? next.boundUrl;
      },
    };
  }

  [Symbol.dispose](): void {
    this.#portal?.[Symbol.dispose]();
    this.#portal = null;
  }
}
