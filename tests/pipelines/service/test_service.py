"""What calls share: bytes of bodies, threads, a secret, and how it ends."""

from streaming_moments.storage.inbox.deletions import Deletion


def test_a_service_shows_no_secret_and_holds_four_bodies(call_at):
    with call_at("night", limits={"body": 100}) as caller:
        service = caller.service
        assert len(service.secret) == 32
        assert repr(service.secret) not in repr(service)
        assert service.budget.nbytes == 400
        assert service.taking.total_tokens == 8
        assert service.silence is None
        assert service.view is service.current.view
        identity = service.deletions.ask(Deletion("id", ("a",)))
        assert list(service.deletions.waiting()) == [identity]
        service.close()
        assert caller.post("/v1/documents", [{"text": "a"}]).status == 503
        assert service.current._over.is_set()
