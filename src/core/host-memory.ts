/**
 * What listeners and nodes keep with the host, one of each class, made at first use: one that a reload opens anew, and any
 * other, finds what was kept before. It stays until the process ends.
 */
export interface HostMemory {
  of<Kept extends object>(kind: new () => Kept): Kept;
}
