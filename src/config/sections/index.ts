/** The typed sections of the file, one file each beside this one. */
export interface Sections {
  readonly _?: never;
}
