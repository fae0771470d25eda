/** The door to nftables. Where a system cannot, the error names the configuration key. */
import { ConfigError, messageOf } from "#core/errors.ts";
import { openNftSession, type NftSession } from "./linux/nft/session.ts";

export { NftError, type NftSession } from "./linux/nft/session.ts";

/** With this variable set to 1 nftables is not touched, as in other cores of this family. */
const SWITCH = "DISABLE_NFTABLES";

/** `key` is the configuration key that needs it. Throws `ConfigError` where there is no nftables to be had. */
export async function openNftables(
  key: string,
  system: string = process.platform,
  env: NodeJS.ProcessEnv = process.env,
): Promise<NftSession> {
  if (system !== "linux") throw new ConfigError(`${key}: only Linux can do this, this system is ${system}`);
  if (env[SWITCH] === "1")
    throw new ConfigError(`${key}: needs nftables, which ${SWITCH}=1 switches off; set ${key}: false`);
  if (process.getBuiltinModule("node:ffi") === undefined)
    throw new ConfigError(`${key}: needs a runtime with node:ffi, ${process.version} has none`);
  try {
    return await openNftSession();
  } catch (error) {
    const hint = "needs the nftables library (Debian: libnftables1, OpenWrt: nftables)";
    throw new ConfigError(`${key}: ${hint}: ${messageOf(error)}`, { cause: error });
  }
}
