/** TUNs made ready for the next configuration. Disposing before `activate` puts back what was there before. */
export interface TunChange extends AsyncDisposable {
  /** Synchronous, with the swap of runtimes. */
  activate(): void;
}

export const NO_CHANGE: TunChange = { activate() {}, async [Symbol.asyncDispose]() {} };
