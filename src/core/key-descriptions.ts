/** What a key means, in a sentence or two; with an example of its value where the default says too little. */
export type Described = string | readonly [text: string, example: unknown];

/**
 * By key, as it is written in the file. A key that stands in several places and means something else in each is written
 * with the keys around it, joined by dots: `dns.listen`. Numbers and names of entries are not part of it.
 */
export type Descriptions = Readonly<Record<string, Described>>;
