/**
 * libnftables in the process (libnftables(3)): commands as text, one buffer of them is one transaction. A context keeps
 * its netlink socket, and a table with the flag `owner` lives as long as the socket that made it.
 */
import { isNextSelectable, MOST_SELECTABLE, ownDescriptors } from "#platform/linux/own-descriptors.ts";
import { ffiFor } from "#platform/ffi.ts";

const SIGNATURES = {
  nft_ctx_new: { arguments: ["u32"], return: "pointer" },
  nft_ctx_free: { arguments: ["pointer"], return: "void" },
  nft_ctx_buffer_output: { arguments: ["pointer"], return: "i32" },
  nft_ctx_buffer_error: { arguments: ["pointer"], return: "i32" },
  nft_ctx_output_set_flags: { arguments: ["pointer", "u32"], return: "void" },
  nft_ctx_get_output_buffer: { arguments: ["pointer"], return: "pointer" },
  nft_ctx_get_error_buffer: { arguments: ["pointer"], return: "pointer" },
  nft_run_cmd_from_buffer: { arguments: ["pointer", "pointer"], return: "i32" },
} as const;

const LIBRARY = "libnftables.so.1";
const NFT_CTX_OUTPUT_HANDLE = 1 << 3;

export interface NftOutcome {
  /** What `list` commands print, with handles. */
  readonly output: string;
  /** What the library says of a failure, in which case nothing was changed; null: all of it is done. */
  readonly failure: string | null;
}

export interface NftContext {
  /** Blocks until the kernel has answered. */
  run(commands: string): NftOutcome;
  /** Tables that the context owns go with it. */
  close(): void;
}

export interface NftLibrary {
  /** Throws where there is no memory, or no descriptor that the library can use. */
  openContext(): NftContext;
}

/**
 * For a thread that does nothing else: the library waits for its sockets with `select`, which above 1,023 would end the
 * program, so the thread takes descriptors of its own. Throws where the library or FFI is missing.
 */
export function openNftLibrary(): NftLibrary {
  const ffi = ffiFor("nftables");
  const { lib, functions } = ffi.dlopen(LIBRARY, SIGNATURES);
  ownDescriptors(ffi);
  const library: NftLibrary & { readonly keepsLoaded: unknown } = {
    keepsLoaded: lib,
    openContext() {
      if (!isNextSelectable())
        throw new Error(
          `${LIBRARY}: more than ${MOST_SELECTABLE} descriptors are open, and it can use no higher one`,
        );
      const context = functions.nft_ctx_new(0);
      const buffered =
        functions.nft_ctx_buffer_output(context) === 0 && functions.nft_ctx_buffer_error(context) === 0;
      if (!buffered) throw new Error(`${LIBRARY}: no memory`);
      functions.nft_ctx_output_set_flags(context, NFT_CTX_OUTPUT_HANDLE);
      return {
        run(commands) {
          const failed = functions.nft_run_cmd_from_buffer(context, Buffer.from(`${commands}\0`)) !== 0;
          const output = ffi.toString(functions.nft_ctx_get_output_buffer(context)) ?? "";
          const error = ffi.toString(functions.nft_ctx_get_error_buffer(context)) ?? "";
          return { output, failure: failed ? error.trim() || "no reason given" : null };
        },
        close: () => functions.nft_ctx_free(context),
      };
    },
  };
  return library;
}
