import type { SafeFiles } from "#core/files.ts";

/** Nothing is on a disk: every certificate and every key is given as its text. */
export const textFiles: SafeFiles = {
  resolve: (path) => path,
  readPem: async (text) => text,
  watchPem: () => ({ [Symbol.dispose]() {} }),
};
