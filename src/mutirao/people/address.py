"""Which addresses the engine may call for somebody: the guard of webhooks.

Whoever may add a webhook says where a machine of ours sends requests to. So that this is no way into the network that it
stands in, a name is looked up here, only addresses of the public internet and of networks that the operator allows are
taken, and the connection goes to the very address that was checked.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from mutirao.errors import OperatorError

VARIABLE = "MUTIRAO_WEBHOOK_NETWORKS"

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# By these, addresses of version 6 lead to any address of version 4.
_TUNNELS = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"), ip_network("2002::/16"), ip_network("2001::/32"))


class AddressRefused(Exception):
    """There is no address of that name that may be called."""


def allowed_networks(text: str | None = None) -> tuple[Network, ...]:
    """The networks that the operator allows beside the public internet, such as `127.0.0.0/8, 10.1.0.0/16`."""
    given = os.environ.get(VARIABLE, "") if text is None else text
    try:
        return tuple(ip_network(each.strip()) for each in given.split(",") if each.strip())
    except ValueError as error:
        raise OperatorError("wrong_setting", f"{VARIABLE}: {error}; say 127.0.0.0/8, for one") from error


def may_call(address: Address, networks: Sequence[Network]) -> bool:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in networks):
        return True
    return address.is_global and not address.is_multicast and not any(address in tunnel for tunnel in _TUNNELS)


async def checked_address(host: str, port: int, networks: Sequence[Network]) -> str:
    """An address of this host that may be called."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        found = []
    for address in (ip_address(each[4][0]) for each in found):
        if may_call(address, networks):
            return str(address)
    # One answer for both: or whoever adds a webhook could ask which names and addresses there are inside.
    raise AddressRefused(
        f"{host} has no address on the public internet, nor in a network that the operator allows by {VARIABLE}"
    )
