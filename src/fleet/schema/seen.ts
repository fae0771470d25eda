/**
 * The seventh version of the fleet's schema: what a login sees is asked once a statement, and not for every row; a login may say of
 * a thousand nodes that they have none of the changes, which all others count.
 */
const TABLES = { listener: "tag", app_user: "listener", change: "listener", link: "listener" } as const;

export const SEEN = `
CREATE FUNCTION weir.seen() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT array(SELECT listener FROM weir.access WHERE login = session_user)
$$;
${Object.entries(TABLES)
  .map(
    ([table, column]) =>
      `ALTER POLICY own ON weir.${table} USING ((SELECT weir.sees('*')) OR ${column} = ANY ((SELECT weir.seen())::text[]));`,
  )
  .join("\n")}
`;
