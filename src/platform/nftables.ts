/** nftables. On a system without it the error names the configuration key. */
import { ConfigError, messageOf } from "#core/errors.ts";
import { NftThread, type NftSession } from "./linux/nft/session.ts";
import { ffiFor } from "./ffi.ts";

export { NftError, type NftSession } from "./linux/nft/session.ts";

/** With this variable set to 1 nftables is not touched, as in other cores of this family. */
const SWITCH = "DISABLE_NFTABLES";

/** The nftables of this machine, by one thread, which begins with the first session and lasts; one that has died is replaced. */
export class Nftables {
  #thread: Promise<NftThread> | null = null;

  /** `key` is the configuration key that needs it. Throws `ConfigError` where there is no nftables to be had. */
  async open(
    key: string,
    system: string = process.platform,
    env: NodeJS.ProcessEnv = process.env,
  ): Promise<NftSession> {
    ffiFor(key, system);
    if (env[SWITCH] === "1")
      throw new ConfigError(`${key}: needs nftables, which ${SWITCH}=1 switches off; set ${key}: false`);
    try {
      return await (await this.#openThread()).openSession();
    } catch (error) {
      const hint = "needs the nftables library (Debian: libnftables1, OpenWrt: nftables)";
      throw new ConfigError(`${key}: ${hint}: ${messageOf(error)}`, { cause: error });
    }
  }

  async #openThread(): Promise<NftThread> {
    const opened = this.#thread;
    if (opened !== null && !(await opened).hasEnded) return opened;
    if (this.#thread !== opened && this.#thread !== null) return this.#thread; // another caller was first
    const thread = NftThread.open();
    this.#thread = thread;
    thread.catch(() => {
      if (this.#thread === thread) this.#thread = null; // the library may be there at the next try
    });
    return thread;
  }
}
