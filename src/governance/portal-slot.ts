/** Holds the portal in force and prepares the next one beside it. */
import type { GovernanceSettings } from "./settings.ts";
import { Portal, type PortalEnv } from "./portal.ts";
import type { Prepared } from "./governance.ts";

export class PortalSlot implements Disposable {
  readonly #env: PortalEnv;
  readonly #onLink: (link: ((ids: readonly string[]) => string) | null) => void;
  #portal: Portal | null = null;

  /** `onLink` is called with the maker of portal links that applies from now on; null: there is no portal. */
  constructor(env: PortalEnv, onLink: (link: ((ids: readonly string[]) => string) | null) => void) {
    this.#env = env;
    this.#onLink = onLink;
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
        this.#onLink(next === null ? null : (ids) => next.link(ids));
      },
    };
  }

  [Symbol.dispose](): void {
    this.#portal?.[Symbol.dispose]();
    this.#portal = null;
    this.#onLink(null);
  }
}
