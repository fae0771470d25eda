/** The first version of the fleet's schema: who may what. `session_user` is the login, also inside of a function. */
export const DECIDING = `
CREATE FUNCTION weir.is_admin() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT pg_has_role(session_user, 'weir_admin', 'MEMBER')
$$;

CREATE FUNCTION weir.sees(tag text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT weir.is_admin()
      OR EXISTS (SELECT FROM weir.access WHERE login = session_user AND listener IN (tag, '*'))
$$;

CREATE FUNCTION weir.may_write(tag text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT weir.is_admin()
      OR EXISTS (SELECT FROM weir.access WHERE login = session_user AND listener IN (tag, '*') AND may_write)
$$;
`;

/** After all functions: rights are given on what is there. */
export const RIGHTS = `
CREATE POLICY own ON weir.listener FOR SELECT USING (weir.sees(tag));
CREATE POLICY own ON weir.app_user FOR SELECT USING (weir.sees(listener));
CREATE POLICY own ON weir.change FOR SELECT USING (weir.sees(listener));
CREATE POLICY own ON weir.usage_total FOR SELECT
  USING (EXISTS (SELECT FROM weir.app_user u WHERE u.id = user_id));

REVOKE ALL ON SCHEMA weir FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA weir FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT USAGE ON SCHEMA weir TO weir_admin, weir_node;
GRANT SELECT ON weir.version, weir.listener, weir.app_user, weir.change, weir.usage_total, weir.seal
  TO weir_admin, weir_node;
GRANT SELECT (id, name, address, labels, version, epoch, seen_at, applied, connections, draining) ON weir.node
  TO weir_admin, weir_node;
GRANT SELECT ON weir.audit, weir.access TO weir_admin;
GRANT EXECUTE ON FUNCTION
  weir.is_admin, weir.sees, weir.may_write, weir.commit_change, weir.publish_listener, weir.prove_seal, weir.allow,
  weir.enroll, weir.beat, weir.drain, weir.forget
  TO weir_admin, weir_node;
`;
